# SPDX-License-Identifier: Apache-2.0
# The options of a build, and its flags.
option(BUILD_SHARED_LIBS "Also build libgpups as a shared library" OFF)
option(GPUPS_BUILD_TRAINER "Build gpu_train, not only the library" ON)
option(GPUPS_BUILD_TESTS "Build the tests (they need GPUPS_BUILD_TRAINER)" ${PROJECT_IS_TOP_LEVEL})
option(GPUPS_BUILD_BENCH "Build the benchmarks (they need GPUPS_BUILD_TRAINER)" ${PROJECT_IS_TOP_LEVEL})
set(GPUPS_CUDA AUTO CACHE STRING "Device code: AUTO (if nvcc is found), ON or OFF")
option(GPUPS_EMULATED "Execute device code in an emulator on the host, for tests on machines without a GPU" OFF)
set(GPUPS_EMULATED_SEEDS 1 CACHE STRING "Runs of each test on emulated devices, each with another interleaving")
set(GPUPS_PMIX AUTO CACHE STRING "Ranks started by mpirun or srun --mpi=pmix: AUTO (if PMIx is found), ON or OFF")
set(GPUPS_CUDA_ARCHITECTURES "80;90;100" CACHE STRING "Compute capabilities of the device code")
option(GPUPS_UNITY "Compile many sources at a time: a first build is faster, a build after a change slower" OFF)
option(GPUPS_RESOURCE_USE "Keep the device compiler's report of each kernel, for tools/resource_use" OFF)
option(GPUPS_FUZZ "Link the fuzz targets with libFuzzer (clang only); without it, they replay their corpora" OFF)
set(GPUPS_SANITIZE "" CACHE STRING "Sanitizers for host code, as in -fsanitize=")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# The flags of all targets. Assertions are checked in Debug builds only.
add_library(gpups_flags INTERFACE)
add_library(gpups::flags ALIAS gpups_flags)
target_compile_options(gpups_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wno-unknown-pragmas -Wno-missing-field-initializers>
  $<$<COMPILE_LANGUAGE:CXX>:-fno-math-errno -fno-trapping-math>
  # A product is fused with a sum only where the code says so. Otherwise it would depend on the instruction set, and on
  # the code around it, how floats are rounded.
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off> $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false>
  $<$<COMPILE_LANGUAGE:CXX>:-Wno-psabi>)  # wide vectors are only arguments of functions of this project
target_compile_options(gpups_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-march=${GPUPS_HOST_MARCH}>)
if(GPUPS_SANITIZE)
  target_compile_options(gpups_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${GPUPS_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all>)
  target_link_options(gpups_flags INTERFACE -fsanitize=${GPUPS_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)  # clang 14 fails on coroutines with this check
    target_compile_options(gpups_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=function>)
  endif()
endif()
# The flags of code that does not run in the steps of a training: half the optimisation, in two thirds of the time. A
# target links this last.
add_library(gpups_cold_flags INTERFACE)
target_compile_options(gpups_cold_flags INTERFACE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1>)
# Clones share the cache of ccache: paths in the project are cached as relative paths. Each kind of machine has a
# separate part of the cache, since "native" has another meaning on each. Code with a precompiled header is cached only
# with this sloppiness, since ccache does not see the macros of the header. With CCACHE_DEPEND, ccache compares the
# files that the compiler lists as included; otherwise it would also run the preprocessor before each compilation.
find_program(GPUPS_CCACHE ccache)
if(GPUPS_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=${GPUPS_HOST_MARCH} -Q --help=target
    OUTPUT_VARIABLE machine ERROR_VARIABLE machine_unknown)
  string(MD5 machine "${machine}")
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_NAMESPACE=gpups-${machine} ${GPUPS_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
# ptxas reports registers and spills of each kernel; the launcher writes the report to a file beside the object.
if(GPUPS_RESOURCE_USE)
  add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-v>)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/tools/resource_use --compile ${CMAKE_CUDA_COMPILER_LAUNCHER})
endif()
