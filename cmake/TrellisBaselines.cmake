# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# Task runtimes that `trellis bench tasks` and `trellis bench grain` compare with: each a shared object of its own, so that
# nothing else depends on them, and built only when found. They stay in the build folder.
function(trellis_add_baseline name source)
    add_library(baseline_${name} MODULE "${PROJECT_SOURCE_DIR}/tests/benchmarks/baselines/${source}")
    set_target_properties(
        baseline_${name} PROPERTIES PREFIX "" OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY "${TRL_BASELINE_OUTPUT}"
    )
    target_link_libraries(baseline_${name} PRIVATE ${ARGN})
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
