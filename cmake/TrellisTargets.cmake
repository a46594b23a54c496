# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# One object library per layer; from them libtrellis.so, the command and, in TrellisTests.cmake, every test program.
set(TRL_LAYERS scheduler spatialops expressions solvers inputs)

# The folders of each layer's sources, in order.
foreach(layer IN LISTS TRL_LAYERS)
    set(TRL_FOLDERS_${layer} "${PROJECT_SOURCE_DIR}/${layer}")
endforeach()
set(expressions_folders lang plugin ir program front passes backend/interpreter backend/emit backend/native backend/cuda run)
list(TRANSFORM expressions_folders PREPEND "${PROJECT_SOURCE_DIR}/expressions/" OUTPUT_VARIABLE TRL_FOLDERS_expressions)

# trellis_glob(variable folder... PATTERN pattern): files of these folders.
function(trellis_glob variable)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "PATTERN" "")
    list(TRANSFORM arg_UNPARSED_ARGUMENTS APPEND "/${arg_PATTERN}")
    file(GLOB files CONFIGURE_DEPENDS ${arg_UNPARSED_ARGUMENTS})
    set(${variable} ${files} PARENT_SCOPE)
endfunction()

set(TRL_PLUGIN_OUTPUT "${PROJECT_BINARY_DIR}/plugins")
set(TRL_BASELINE_OUTPUT "${PROJECT_BINARY_DIR}/baselines")

# What inputs/ knows of the build: TRL_PLUGIN_FOLDER and TRL_TEMPLATE_FOLDER serve until the program is installed.
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
set(build_options "${CMAKE_BUILD_TYPE}: ${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${build_type}} -ffp-contract=off")
if(TRL_SANITIZE)
    string(APPEND build_options " -fsanitize=${TRL_SANITIZE}")
endif()
string(REGEX REPLACE "  +" " " build_options "${build_options}")
add_library(trellis_build_facts INTERFACE)
target_compile_definitions(
    trellis_build_facts
    INTERFACE TRL_VERSION="${PROJECT_VERSION}"
              TRL_BUILD_OPTIONS="${build_options}"
              TRL_COMPILER="${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}"
              TRL_CUDA_VERSION="$<IF:$<BOOL:${TRL_HAVE_CUDA}>,${CUDAToolkit_VERSION},none>"
              TRL_PLUGIN_FOLDER="${TRL_PLUGIN_OUTPUT}"
              TRL_TEMPLATE_FOLDER="${PROJECT_SOURCE_DIR}/inputs/templates"
              TRL_BASELINE_FOLDER="${TRL_BASELINE_OUTPUT}"
)

# The text that every compiled kernel begins with.
set(kernel_prelude "${PROJECT_BINARY_DIR}/kernel_prelude.c")
set(kernel_prelude_parts "${PROJECT_SOURCE_DIR}/spatialops/trl_limiter_body.h"
                         "${PROJECT_SOURCE_DIR}/expressions/lang/trl_functions_base_body.h"
                         "${PROJECT_SOURCE_DIR}/expressions/lang/trl_functions_exp_body.h"
                         "${PROJECT_SOURCE_DIR}/expressions/lang/trl_functions_angle_body.h"
                         "${PROJECT_SOURCE_DIR}/expressions/lang/trl_functions_noise_body.h"
                         "${PROJECT_SOURCE_DIR}/expressions/backend/emit/trl_kernel_point_body.h"
                         "${PROJECT_SOURCE_DIR}/expressions/backend/emit/trl_kernel_body.h"
                         "${PROJECT_SOURCE_DIR}/expressions/backend/emit/trl_kernel_launch_body.h"
                         "${PROJECT_SOURCE_DIR}/expressions/backend/emit/trl_kernel_steps_body.h"
                         "${PROJECT_SOURCE_DIR}/expressions/backend/emit/trl_kernel_merge_body.h"
                         "${PROJECT_SOURCE_DIR}/expressions/backend/emit/trl_kernel_warp_body.h"
                         "${PROJECT_SOURCE_DIR}/spatialops/trl_sum_body.h"
                         "${PROJECT_SOURCE_DIR}/expressions/backend/emit/trl_kernel_last_body.h")
add_custom_command(
    OUTPUT "${kernel_prelude}"
    COMMAND "${CMAKE_COMMAND}" -DNAME=trli_kernel_prelude "-DOUTPUT=${kernel_prelude}" "-DINPUTS=${kernel_prelude_parts}"
            -P "${PROJECT_SOURCE_DIR}/cmake/TrellisEmbed.cmake"
    DEPENDS ${kernel_prelude_parts} "${PROJECT_SOURCE_DIR}/cmake/TrellisEmbed.cmake"
    VERBATIM
)

# And the text behind it of kernels that transform lines.
set(lines_prelude "${PROJECT_BINARY_DIR}/lines_prelude.c")
set(lines_prelude_parts "${PROJECT_SOURCE_DIR}/solvers/transform_plan_body.h"
                        "${PROJECT_SOURCE_DIR}/solvers/transform_threads_body.h"
                        "${PROJECT_SOURCE_DIR}/solvers/transform_passes_body.h"
                        "${PROJECT_SOURCE_DIR}/solvers/trl_lines_body.h" "${PROJECT_SOURCE_DIR}/solvers/trl_planes_body.h")
add_custom_command(
    OUTPUT "${lines_prelude}"
    COMMAND "${CMAKE_COMMAND}" -DNAME=trli_lines_prelude "-DOUTPUT=${lines_prelude}" "-DINPUTS=${lines_prelude_parts}"
            -P "${PROJECT_SOURCE_DIR}/cmake/TrellisEmbed.cmake"
    DEPENDS ${lines_prelude_parts} "${PROJECT_SOURCE_DIR}/cmake/TrellisEmbed.cmake"
    VERBATIM
)

# And that of the kernel that finds dt.
set(bound_prelude "${PROJECT_BINARY_DIR}/bound_prelude.c")
set(bound_prelude_parts "${PROJECT_SOURCE_DIR}/solvers/trl_spectrum_body.h"
                        "${PROJECT_SOURCE_DIR}/solvers/trl_bound_body.h")
add_custom_command(
    OUTPUT "${bound_prelude}"
    COMMAND "${CMAKE_COMMAND}" -DNAME=trli_bound_prelude "-DOUTPUT=${bound_prelude}" "-DINPUTS=${bound_prelude_parts}"
            -P "${PROJECT_SOURCE_DIR}/cmake/TrellisEmbed.cmake"
    DEPENDS ${bound_prelude_parts} "${PROJECT_SOURCE_DIR}/cmake/TrellisEmbed.cmake"
    VERBATIM
)

# A layer sees its own headers and those of the layers before it.
set(layer_includes)
set(TRL_LAYER_OBJECTS)
foreach(layer IN LISTS TRL_LAYERS)
    list(APPEND layer_includes ${TRL_FOLDERS_${layer}})
    trellis_glob(sources ${TRL_FOLDERS_${layer}} PATTERN "*.c")
    trellis_glob(cuda_sources ${TRL_FOLDERS_${layer}} PATTERN "*.cu")
    if(layer STREQUAL "inputs") # `trellis bench` runs them
        file(GLOB benchmarks CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/benchmarks/*.c")
        list(APPEND sources ${benchmarks})
        if(TRL_SANITIZE) # which measure nothing
            set_property(SOURCE ${benchmarks} APPEND PROPERTY COMPILE_OPTIONS -O0)
        endif()
        file(GLOB cuda_benchmarks CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/benchmarks/*.cu")
        list(APPEND cuda_sources ${cuda_benchmarks})
    endif()
    list(FILTER sources EXCLUDE REGEX "/inputs/main\\.c$")
    if(layer STREQUAL "solvers")
        list(APPEND sources "${lines_prelude}" "${bound_prelude}")
    endif()
    if(layer STREQUAL "expressions")
        list(APPEND sources "${kernel_prelude}")
        if(TARGET CUDA::nvrtc) # opened at run time, where the loader knows no other
            set_property(
                SOURCE "${PROJECT_SOURCE_DIR}/expressions/backend/cuda/rtc.c" APPEND
                PROPERTY COMPILE_DEFINITIONS TRL_NVRTC="$<TARGET_FILE:CUDA::nvrtc>"
            )
        endif()
    endif()
    if(TRL_HAVE_SUNDIALS)
        list(FILTER sources EXCLUDE REGEX "/cvode_missing\\.c$")
    else()
        list(FILTER sources EXCLUDE REGEX "/cvode(_vector)?\\.c$")
    endif()
    if(TRL_HAVE_KLU)
        list(FILTER sources EXCLUDE REGEX "/factors_missing\\.c$")
    else()
        list(FILTER sources EXCLUDE REGEX "/factors\\.c$")
    endif()
    if(TRL_HAVE_CUDA)
        list(FILTER sources EXCLUDE REGEX "_none\\.c$") # x_none.c stands in for x_cuda.cu
        list(APPEND sources ${cuda_sources})
    endif()
    if(NOT sources)
        message(STATUS "Layer ${layer} has no sources")
        continue()
    endif()
    add_library(trl_${layer} OBJECT ${sources})
    target_include_directories(trl_${layer} PRIVATE ${layer_includes})
    target_link_libraries(trl_${layer} PRIVATE trellis_flags trellis_dependencies)
    list(APPEND TRL_LAYER_OBJECTS $<TARGET_OBJECTS:trl_${layer}>)
endforeach()
if(TARGET trl_inputs)
    target_link_libraries(trl_inputs PRIVATE trellis_build_facts)
endif()

# libtrellis.so: what programs in C link with. Only TRL_API symbols leave it.
add_library(trellis_shared SHARED ${TRL_LAYER_OBJECTS})
set_target_properties(
    trellis_shared
    PROPERTIES OUTPUT_NAME trellis
               EXPORT_NAME trellis
               VERSION ${PROJECT_VERSION}
               SOVERSION ${PROJECT_VERSION_MAJOR}
               LINKER_LANGUAGE C
)
target_link_libraries(trellis_shared PUBLIC MPI::MPI_C PRIVATE trellis_flags trellis_dependencies)
# Symbols of static libraries (cudart) stay inside.
target_link_options(trellis_shared PRIVATE -Wl,--exclude-libs,ALL)
foreach(layer IN LISTS TRL_LAYERS)
    target_include_directories(trellis_shared INTERFACE "$<BUILD_INTERFACE:${TRL_FOLDERS_${layer}}>")
endforeach()
target_include_directories(trellis_shared INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/trellis>")
add_library(Trellis::trellis ALIAS trellis_shared)

# What a plugin is compiled with: headers only. Its trl_ functions are those of the program that loads it.
add_library(trellis_plugin INTERFACE)
set_target_properties(trellis_plugin PROPERTIES EXPORT_NAME plugin)
target_link_libraries(trellis_plugin INTERFACE MPI::MPI_C)
foreach(layer scheduler spatialops expressions)
    target_include_directories(trellis_plugin INTERFACE "$<BUILD_INTERFACE:${TRL_FOLDERS_${layer}}>")
endforeach()
target_include_directories(trellis_plugin INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/trellis>")
add_library(Trellis::plugin ALIAS trellis_plugin)

# A program that holds all layers and lends its trl_ functions to plugins.
function(trellis_link_layers target)
    target_sources(${target} PRIVATE ${TRL_LAYER_OBJECTS})
    target_include_directories(${target} PRIVATE ${layer_includes})
    target_link_libraries(${target} PRIVATE trellis_flags trellis_dependencies trellis_build_facts)
    if(TRL_SANITIZE MATCHES "address")
        target_sources(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests/suppressions/open_mpi.c")
    endif()
    # But clang's sanitizers are a static library whose malloc and free must reach the C library.
    if(NOT TRL_SANITIZE)
        target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL)
    endif()
    set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON LINKER_LANGUAGE C)
endfunction()

if(EXISTS "${PROJECT_SOURCE_DIR}/inputs/main.c")
    add_executable(trellis inputs/main.c)
    trellis_link_layers(trellis)
else()
    message(STATUS "No inputs/main.c: the command trellis is not built")
endif()

# Example plugins: each source is a library that decks name.
include(TrellisPlugin)
file(GLOB plugin_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/inputs/plugins/*.c")
set(TRL_PLUGINS)
foreach(source IN LISTS plugin_sources)
    cmake_path(GET source STEM name)
    trellis_add_plugin(plugin_${name} "${source}")
    set_target_properties(plugin_${name} PROPERTIES OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY "${TRL_PLUGIN_OUTPUT}")
    target_link_libraries(plugin_${name} PRIVATE trellis_flags)
    list(APPEND TRL_PLUGINS plugin_${name})
endforeach()
add_custom_target(plugins DEPENDS ${TRL_PLUGINS})
