# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# What Trellis links with, gathered in the target trellis_dependencies. docs/dependencies.md says why each is there.
include(CheckCSourceCompiles)
include(CheckLanguage)
include(CMakePushCheckState)

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(MPI REQUIRED COMPONENTS C)
find_package(ZLIB REQUIRED)
pkg_check_modules(CAIRO REQUIRED IMPORTED_TARGET cairo)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_search_module(HDF5 REQUIRED IMPORTED_TARGET hdf5-openmpi hdf5-mpi hdf5)

# Its high-level library, for dimension scales, has no entry of its own in Debian's pkg-config file.
find_library(TRL_HDF5_HL NAMES hdf5_hl hdf5_openmpi_hl HINTS ${HDF5_LIBRARY_DIRS} NO_DEFAULT_PATH)
find_library(TRL_HDF5_HL NAMES hdf5_openmpi_hl hdf5_hl REQUIRED)

cmake_push_check_state(RESET)
set(CMAKE_REQUIRED_LIBRARIES PkgConfig::HDF5 MPI::MPI_C)
check_c_source_compiles("#include <hdf5.h>
#ifndef H5_HAVE_PARALLEL
#error serial
#endif
int main(void) { return H5open() < 0; }" TRL_HDF5_IS_PARALLEL)
cmake_pop_check_state()
if(NOT TRL_HDF5_IS_PARALLEL)
    message(FATAL_ERROR "HDF5 was found (${HDF5_LINK_LIBRARIES}), but it cannot do parallel I/O with this MPI. "
                        "Install the parallel one: libhdf5-openmpi-dev on Debian.")
endif()

set(TRL_SUNDIALS "AUTO" CACHE STRING "Use SUNDIALS' CVODE: AUTO (when it is found), ON, OFF")
set_property(CACHE TRL_SUNDIALS PROPERTY STRINGS AUTO ON OFF)
set(TRL_HAVE_SUNDIALS OFF)
if(NOT TRL_SUNDIALS STREQUAL "OFF")
    find_path(TRL_SUNDIALS_INCLUDE cvode/cvode.h)
    find_library(TRL_CVODE_LIBRARY sundials_cvode) # with the linear and nonlinear solvers that it uses
    if(TRL_SUNDIALS_INCLUDE AND TRL_CVODE_LIBRARY)
        cmake_push_check_state(RESET)
        set(CMAKE_REQUIRED_INCLUDES "${TRL_SUNDIALS_INCLUDE}" ${MPI_C_INCLUDE_DIRS})
        check_c_source_compiles("#include <sundials/sundials_config.h>
#if SUNDIALS_VERSION_MAJOR != 6 || !defined(SUNDIALS_DOUBLE_PRECISION)
#error other
#endif
int main(void) { return 0; }" TRL_SUNDIALS_SUITS)
        cmake_pop_check_state()
        set(TRL_HAVE_SUNDIALS ${TRL_SUNDIALS_SUITS})
    endif()
    if(TRL_SUNDIALS STREQUAL "ON" AND NOT TRL_HAVE_SUNDIALS)
        message(FATAL_ERROR "TRL_SUNDIALS=ON, but no CVODE of SUNDIALS 6 in double precision was found. Install "
                            "libsundials-dev on Debian, or configure with TRL_SUNDIALS=AUTO or OFF.")
    endif()
endif()

set(TRL_SUITESPARSE "AUTO" CACHE STRING "Use SuiteSparse's KLU: AUTO (when it is found), ON, OFF")
set_property(CACHE TRL_SUITESPARSE PROPERTY STRINGS AUTO ON OFF)
set(TRL_HAVE_KLU OFF)
if(NOT TRL_SUITESPARSE STREQUAL "OFF")
    find_path(TRL_KLU_INCLUDE klu.h PATH_SUFFIXES suitesparse)
    find_library(TRL_KLU_LIBRARY klu)
    if(TRL_KLU_INCLUDE AND TRL_KLU_LIBRARY)
        set(TRL_HAVE_KLU ON)
    elseif(TRL_SUITESPARSE STREQUAL "ON")
        message(FATAL_ERROR "TRL_SUITESPARSE=ON, but no KLU was found. Install libsuitesparse-dev on Debian, or "
                            "configure with TRL_SUITESPARSE=AUTO or OFF.")
    endif()
endif()

if(BUILD_TESTING)
    pkg_check_modules(CHECK REQUIRED IMPORTED_TARGET check)
    pkg_check_modules(LAPACKE IMPORTED_TARGET lapacke) # for one test: tiled QR
endif()

set(TRL_CUDA "AUTO" CACHE STRING "Build for NVIDIA GPUs: AUTO (when a working nvcc is found), ON, OFF")
set_property(CACHE TRL_CUDA PROPERTY STRINGS AUTO ON OFF)
set(TRL_HAVE_CUDA OFF)
if(NOT TRL_CUDA STREQUAL "OFF")
    find_package(CUDAToolkit 12.8 QUIET) # libraries of kernels in the runtime's functions
    if(CUDAToolkit_FOUND AND NOT CMAKE_CUDA_COMPILER AND CUDAToolkit_NVCC_EXECUTABLE)
        set(ENV{CUDACXX} "${CUDAToolkit_NVCC_EXECUTABLE}")
    endif()
    if(CUDAToolkit_FOUND)
        if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
            set(CMAKE_CUDA_ARCHITECTURES 90) # machine code for Hopper, and PTX for what comes after it
        endif()
        check_language(CUDA)
    endif()
    if(CUDAToolkit_FOUND AND CMAKE_CUDA_COMPILER)
        enable_language(CUDA)
        set(TRL_HAVE_CUDA ON)
    elseif(TRL_CUDA STREQUAL "ON")
        message(FATAL_ERROR "TRL_CUDA=ON, but no CUDA Toolkit with an nvcc that accepts this host compiler was found. "
                            "Put nvcc on the PATH, or configure with TRL_CUDA=AUTO or OFF.")
    endif()
endif()

add_library(trellis_dependencies INTERFACE)
target_link_libraries(
    trellis_dependencies
    INTERFACE MPI::MPI_C PkgConfig::HWLOC PkgConfig::YAML ${TRL_HDF5_HL} PkgConfig::HDF5 PkgConfig::CAIRO ZLIB::ZLIB Threads::Threads ${CMAKE_DL_LIBS} m
)
if(TRL_HAVE_SUNDIALS)
    target_link_libraries(trellis_dependencies INTERFACE "${TRL_CVODE_LIBRARY}")
    target_include_directories(trellis_dependencies SYSTEM INTERFACE "${TRL_SUNDIALS_INCLUDE}")
endif()
if(TRL_HAVE_KLU)
    target_link_libraries(trellis_dependencies INTERFACE "${TRL_KLU_LIBRARY}")
    target_include_directories(trellis_dependencies SYSTEM INTERFACE "${TRL_KLU_INCLUDE}")
endif()
if(TRL_HAVE_CUDA)
    target_link_libraries(trellis_dependencies INTERFACE $<LINK_ONLY:CUDA::cudart_static>) # headers: for .cu only
endif()
