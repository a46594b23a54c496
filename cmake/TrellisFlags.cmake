# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# How everything is compiled, gathered in the target trellis_flags.
option(TRL_WERROR "Warnings are errors" OFF)
option(TRL_POISON "Fill memory that must not be read with NaN before each kernel (slow: for tests)" OFF)
option(TRL_SMALL_SIZES "Block, chunk and tune small problems as if they were large (for tests)" OFF)
option(TRL_FUZZ "Build the fuzz targets (clang)" OFF)
set(TRL_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize=: address,undefined or thread")

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
endif()
# Functions and lines are what profilers and traces of optimised code can use; variables would take a fifth of the compilation.
set(CMAKE_C_FLAGS_RELEASE "-O3 -g1")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
# Compiles in half the time of -O1 -g and runs as fast under a sanitizer, whose traces need functions and lines alone.
set(CMAKE_C_FLAGS_SANITIZE "-Og -g1 -fno-omit-frame-pointer")
set(CMAKE_CUDA_FLAGS_RELEASE "-O3 -g")
set(CMAKE_CUDA_FLAGS_RELWITHDEBINFO "-O2 -g")

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

add_library(trellis_flags INTERFACE)
# In .cu files, which are C++, mpi.h would bring MPI's removed C++ bindings.
target_compile_definitions(
    trellis_flags INTERFACE _GNU_SOURCE $<$<COMPILE_LANGUAGE:CUDA>:OMPI_SKIP_MPICXX> $<$<COMPILE_LANGUAGE:CUDA>:MPICH_SKIP_MPICXX>
)
# Contraction would change bits between compilers and devices: it is off everywhere. Without errno and traps loops with square roots and
# choices become vectors; nothing here asks for either, and the bits are the same. A short loop that lies across two lines of the
# instruction cache loses up to a third of its speed, so that an edit far from it could change it: loops begin with a line.
target_compile_options(
    trellis_flags
    INTERFACE "$<$<COMPILE_LANGUAGE:C>:-Wall;-Wextra;-Wpedantic;-ffp-contract=off;-fno-math-errno;-fno-trapping-math>"
              "$<$<COMPILE_LANGUAGE:C>:-falign-functions=64;-falign-loops=64>"
              "$<$<COMPILE_LANGUAGE:CUDA>:-fmad=false;-Xcompiler=-Wall,-Wextra,-fno-exceptions,-fno-rtti>"
)
if(TRL_WERROR)
    target_compile_options(
        trellis_flags INTERFACE "$<$<COMPILE_LANGUAGE:C>:-Werror>" "$<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>"
    )
endif()
if(TRL_SANITIZE)
    target_compile_definitions(trellis_flags INTERFACE TRL_SANITIZED)
    target_compile_options(
        trellis_flags INTERFACE "$<$<COMPILE_LANGUAGE:C>:-fsanitize=${TRL_SANITIZE};-fno-sanitize-recover=all>"
    )
    # gcc loses track of values behind its own instrumentation.
    target_compile_options(trellis_flags INTERFACE $<$<C_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    target_link_options(trellis_flags INTERFACE "-fsanitize=${TRL_SANITIZE}")
endif()
if(TRL_POISON)
    target_compile_definitions(trellis_flags INTERFACE TRL_POISON)
endif()
if(TRL_SMALL_SIZES)
    target_compile_definitions(trellis_flags INTERFACE TRL_SMALL_SIZES)
endif()
if(TRL_FUZZ)
    target_compile_options(trellis_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
