# SPDX-License-Identifier: Apache-2.0
# The required and optional dependencies. On Debian and Ubuntu, tools/install_dependencies installs all but CUDA and
# NCCL.
find_package(Threads REQUIRED)
find_package(TBB REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(xxhash REQUIRED)
find_path(HIGHWAY_INCLUDE hwy/highway.h REQUIRED)
find_package(oneDNN REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
if(GPUPS_BUILD_TRAINER)
  find_package(CLI11 REQUIRED)
  find_path(TOMLPLUSPLUS_INCLUDE toml++/toml.h REQUIRED)
  find_package(zstd REQUIRED)
  find_package(ZLIB REQUIRED)
endif()

# Launchers: without PMIx, processes get their ranks from RANK and WORLD_SIZE.
set(GPUPS_HAS_PMIX OFF)
if(NOT GPUPS_PMIX STREQUAL "OFF")
  find_package(pmix QUIET)
  set(GPUPS_HAS_PMIX ${pmix_FOUND})
  if(NOT pmix_FOUND AND GPUPS_PMIX STREQUAL "ON")
    message(FATAL_ERROR "PMIx was not found (GPUPS_PMIX is ON): install libpmix-dev")
  endif()
endif()
message(STATUS "gpups: PMIx ${GPUPS_HAS_PMIX}")

# UCX: messages and bulk data between processes.
find_package(ucx QUIET)
set(GPUPS_HAS_UCX ${ucx_FOUND})
message(STATUS "gpups: UCX ${GPUPS_HAS_UCX}")

# hwloc: the topology of cores.
find_package(hwloc QUIET)
set(GPUPS_HAS_HWLOC ${hwloc_FOUND})
message(STATUS "gpups: cores by hwloc ${GPUPS_HAS_HWLOC}")

# CUDA: the compiler, and the libraries of its toolkit.
set(GPUPS_HAS_CUDA OFF)
if(NOT GPUPS_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER)
    find_program(GPUPS_NVCC nvcc PATHS /usr/local/cuda/bin)
    if(GPUPS_NVCC)
      set(CMAKE_CUDA_COMPILER ${GPUPS_NVCC})
    endif()
  endif()
  set(CMAKE_CUDA_ARCHITECTURES ${GPUPS_CUDA_ARCHITECTURES})
  if(GPUPS_EMULATED)  # reads PTX, and takes the place of the CUDA runtime; machine code is made for its report
    set(CMAKE_CUDA_ARCHITECTURES 90)
    set(CMAKE_CUDA_RUNTIME_LIBRARY None)
  endif()
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    # CMake 3.25 does not have nvcc's flag for C++20.
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    find_package(CUDAToolkit REQUIRED)
    set(GPUPS_HAS_CUDA ON)
  elseif(GPUPS_CUDA STREQUAL "ON")
    message(FATAL_ERROR "nvcc was not found (GPUPS_CUDA is ON): put it on PATH or set CMAKE_CUDA_COMPILER")
  endif()
endif()
message(STATUS "gpups: device code ${GPUPS_HAS_CUDA}")

# NCCL: bulk data between the GPUs of ranks, also for sums.
set(GPUPS_HAS_NCCL OFF)
if(GPUPS_EMULATED)  # needs the header; the emulator has the functions
  find_path(NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
  if(NCCL_INCLUDE)
    set(GPUPS_HAS_NCCL ON)
    add_library(nccl::nccl INTERFACE IMPORTED)
    target_include_directories(nccl::nccl INTERFACE ${NCCL_INCLUDE})
    find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})  # for programs with GPUPS_REAL_CUDA
    if(NCCL_LIBRARY)
      target_link_libraries(nccl::nccl INTERFACE $<$<BOOL:$<TARGET_PROPERTY:GPUPS_REAL_CUDA>>:${NCCL_LIBRARY}>)
    endif()
  else()
    message(WARNING "nccl.h was not found, so no test of NCCL is built: install the header of NCCL")
  endif()
elseif(GPUPS_HAS_CUDA)
  find_package(nccl QUIET)
  set(GPUPS_HAS_NCCL ${nccl_FOUND})
endif()
message(STATUS "gpups: NCCL ${GPUPS_HAS_NCCL}")
