# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# What an installation holds, and the package Trellis for find_package, from it or from the build folder.
include(CMakePackageConfigHelpers)

set(TRL_PACKAGE_FOLDER "${CMAKE_INSTALL_LIBDIR}/cmake/Trellis")

# The command looks for plugins and templates in these folders below its own prefix (inputs/command_impl.h).
set(TRL_PLUGIN_INSTALL lib/trellis/plugins)
set(TRL_SHARE_INSTALL share/trellis)

install(
    TARGETS trellis_shared trellis_plugin
    EXPORT TrellisTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
)
set(commands)
if(TARGET trellis)
    set_target_properties(trellis PROPERTIES EXPORT_NAME command)
    install(TARGETS trellis EXPORT TrellisTargets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    set(commands trellis)
endif()
if(TRL_PLUGINS)
    install(TARGETS ${TRL_PLUGINS} LIBRARY DESTINATION ${TRL_PLUGIN_INSTALL})
endif()
foreach(layer IN LISTS TRL_LAYERS)
    trellis_glob(headers ${TRL_FOLDERS_${layer}} PATTERN "trl_*.h")
    install(FILES ${headers} DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/trellis")
endforeach()
install(DIRECTORY inputs/templates inputs/decks DESTINATION ${TRL_SHARE_INSTALL} OPTIONAL)
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")

install(EXPORT TrellisTargets NAMESPACE Trellis:: DESTINATION "${TRL_PACKAGE_FOLDER}")
export(TARGETS trellis_shared trellis_plugin ${commands} NAMESPACE Trellis:: FILE "${PROJECT_BINARY_DIR}/TrellisTargets.cmake")
file(COPY_FILE "${PROJECT_SOURCE_DIR}/cmake/TrellisPlugin.cmake" "${PROJECT_BINARY_DIR}/TrellisPlugin.cmake" ONLY_IF_DIFFERENT)
configure_package_config_file(
    cmake/TrellisConfig.cmake.in "${PROJECT_BINARY_DIR}/TrellisConfig.cmake" INSTALL_DESTINATION "${TRL_PACKAGE_FOLDER}"
)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/TrellisConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(
    FILES "${PROJECT_BINARY_DIR}/TrellisConfig.cmake" "${PROJECT_BINARY_DIR}/TrellisConfigVersion.cmake"
          cmake/TrellisPlugin.cmake
    DESTINATION "${TRL_PACKAGE_FOLDER}"
)

pkg_search_module(MPI_PACKAGE QUIET ompi-c mpi-c mpich)
file(RELATIVE_PATH prefix_from_pkgconfig "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" /)
configure_file(cmake/trellis.pc.in "${PROJECT_BINARY_DIR}/trellis.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/trellis.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
