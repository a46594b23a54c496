# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# Task runtimes that `trellis bench tasks` and `trellis bench grain` compare with, and libraries that `trellis bench solve`
# does: each a shared object of its own, so that nothing else depends on them, and built only when found. They stay in the build folder.
add_custom_target(baselines)
function(trellis_add_baseline name source)
    add_library(baseline_${name} MODULE "${PROJECT_SOURCE_DIR}/tests/benchmarks/baselines/${source}")
    set_target_properties(
        baseline_${name} PROPERTIES PREFIX "" OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY "${TRL_BASELINE_OUTPUT}"
    )
    target_link_libraries(baseline_${name} PRIVATE ${ARGN})
    add_dependencies(baselines baseline_${name})
endfunction()

if(NOT TRL_SANITIZE) # which know nothing of these runtimes' threads
    find_package(OpenMP QUIET COMPONENTS C)
    if(OpenMP_C_FOUND)
        trellis_add_baseline(openmp openmp.c OpenMP::OpenMP_C trellis_flags)
    endif()
    find_path(TRL_TBB_HEADERS oneapi/tbb/flow_graph.h)
    find_library(TRL_TBB_LIBRARY tbb)
    mark_as_advanced(TRL_TBB_HEADERS TRL_TBB_LIBRARY)
    check_language(CXX)
    if(TRL_TBB_HEADERS AND TRL_TBB_LIBRARY AND CMAKE_CXX_COMPILER)
        enable_language(CXX)
        trellis_add_baseline(tbb tbb.cc "${TRL_TBB_LIBRARY}")
        target_include_directories(baseline_tbb SYSTEM PRIVATE "${TRL_TBB_HEADERS}")
        set_target_properties(baseline_tbb PROPERTIES CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON CXX_VISIBILITY_PRESET hidden)
    endif()
endif()

function(trellis_add_solvers name)
    trellis_add_baseline(${name} ${name}.c MPI::MPI_C m trellis_flags ${ARGN})
    target_include_directories(baseline_${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests/benchmarks")
endfunction()

if(NOT TRL_SANITIZE)
    if(TRL_HAVE_FFTW)
        trellis_add_solvers(fftw PkgConfig::FFTW)
        trellis_add_solvers(flow PkgConfig::FFTW)
        target_compile_options(baseline_flow PRIVATE -march=native)
    endif()
    find_path(TRL_HYPRE_HEADERS HYPRE_struct_ls.h PATH_SUFFIXES hypre)
    find_library(TRL_HYPRE_LIBRARY HYPRE)
    mark_as_advanced(TRL_HYPRE_HEADERS TRL_HYPRE_LIBRARY)
    if(TRL_HYPRE_HEADERS AND TRL_HYPRE_LIBRARY)
        trellis_add_solvers(hypre "${TRL_HYPRE_LIBRARY}")
        target_include_directories(baseline_hypre SYSTEM PRIVATE "${TRL_HYPRE_HEADERS}")
    endif()
    pkg_check_modules(PETSC QUIET IMPORTED_TARGET PETSc)
    if(PETSC_FOUND)
        trellis_add_solvers(petsc PkgConfig::PETSC)
    endif()
endif()
