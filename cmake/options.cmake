# SPDX-License-Identifier: Apache-2.0
# What a build can choose.
option(GPUPS_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(GPUPS_BUILD_BENCH "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
set(GPUPS_CUDA AUTO CACHE STRING "Device code: AUTO (where nvcc is found), ON or OFF")
set(GPUPS_PMIX AUTO CACHE STRING "Ranks started by mpirun or srun --mpi=pmix: AUTO (where PMIx is found), ON or OFF")
set(GPUPS_CUDA_ARCHITECTURES "80;90;100" CACHE STRING "Compute capabilities of the device code")
set(GPUPS_HOST_ARCH native CACHE STRING "Machine that host code is made for: native, x86-64-v3, x86-64-v4 or empty")
option(GPUPS_UNITY "Compile sources a dozen at a time: quicker all at once, slower after a change" OFF)
option(GPUPS_RESOURCE_USE "Keep what the device compiler says of each kernel, for tools/resource_use" OFF)
option(GPUPS_FUZZ "Link the fuzz targets with libFuzzer (clang only; else they replay their corpus)" OFF)
set(GPUPS_SANITIZE "" CACHE STRING "Sanitizers for host code, as in -fsanitize=")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# One set of flags for everything of ours. Assertions stay on in Debug builds only.
add_library(gpups_flags INTERFACE)
add_library(gpups::flags ALIAS gpups_flags)
target_compile_options(gpups_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wno-unknown-pragmas -Wno-missing-field-initializers>
  $<$<COMPILE_LANGUAGE:CXX>:-fno-math-errno -fno-trapping-math>
  $<$<COMPILE_LANGUAGE:CXX>:-Wno-psabi>)  # vectors wider than the machine's are passed between our own functions only
if(GPUPS_HOST_ARCH)
  target_compile_options(gpups_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=${GPUPS_HOST_ARCH}>)
endif()
if(GPUPS_SANITIZE)
  target_compile_options(gpups_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${GPUPS_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all>)
  target_link_options(gpups_flags INTERFACE -fsanitize=${GPUPS_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)  # clang 14 does not assemble coroutines whose type is to be checked
    target_compile_options(gpups_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=function>)
  endif()
endif()
# What one clone has compiled, another need not: paths below the project are cached as relative ones. Code for the
# machine at hand is cached apart for each kind of machine, since "native" alone does not tell them apart.
find_program(GPUPS_CCACHE ccache)
if(GPUPS_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=${GPUPS_HOST_ARCH} -Q --help=target
    OUTPUT_VARIABLE machine ERROR_VARIABLE machine_unknown)
  string(MD5 machine "${machine}")
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_NAMESPACE=gpups-${machine} ${GPUPS_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
# ptxas tells registers and spills of each kernel; the launcher keeps that beside the object.
if(GPUPS_RESOURCE_USE)
  add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-v>)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/tools/resource_use --compile ${CMAKE_CUDA_COMPILER_LAUNCHER})
endif()
