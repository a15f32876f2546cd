# SPDX-License-Identifier: Apache-2.0
# UCX replaces mmap() as its library is loaded, and the thread sanitizer's programs crash at their first thread.
set(test_environment "")
set(test_runs 1)
if(GPUPS_SANITIZE)  # programs are several times slower; the tests of levels run three seeds
  set(test_environment GPUPS_CASE_SEEDS=1)
  if(GPUPS_SANITIZE MATCHES thread)
    list(APPEND test_environment UCX_MEM_EVENTS=no)
  endif()
elseif(GPUPS_EMULATED)
  set(test_environment GPUPS_CASE_SEEDS=1)  # an emulated device is slow
  set(test_runs ${GPUPS_EMULATED_SEEDS})
elseif(CMAKE_CROSSCOMPILING)  # each program runs once for each level of the host code
  list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " runner)
  set(test_environment GPUPS_CASE_SEEDS=1 "GPUPS_CASE_RUNNER=${runner}")
  set(test_levels ${GPUPS_HOST_MARCH} ${GPUPS_HOST_LEVELS})
  list(LENGTH test_levels test_runs)
endif()

# The library is checked for undefined behaviour; tests are not, which saves a third of their compile time.
add_library(gpups_test_flags INTERFACE)
if(GPUPS_SANITIZE MATCHES undefined)
  target_compile_options(gpups_test_flags INTERFACE -fno-sanitize=undefined)
endif()

# Gives a target of tests their libraries and options.
function(gpups_test_target name)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_link_libraries(${name} PRIVATE ${ARGN} gpups GTest::gtest_main GTest::gmock fmt::fmt
    nlohmann_json::nlohmann_json gpups::flags gpups_test_flags)  # in this order: the last options win
endfunction()

# Parses headers that most tests include only once, which saves a third of the compile time.
if(GPUPS_UNITY)
  file(CONFIGURE OUTPUT headers.cpp CONTENT "")
  add_executable(gpups_test_headers EXCLUDE_FROM_ALL ${CMAKE_CURRENT_BINARY_DIR}/headers.cpp)
  gpups_test_target(gpups_test_headers)
  target_precompile_headers(gpups_test_headers PRIVATE [["tests/headers.hpp"]])  # relative, as in cmake/unity.cmake
endif()

# gpups_tests(name [LABELS label...] [SERIAL] [SHARDS n] [LIBRARIES library...] [EMULATED_FILTER pattern]
#             [TSAN_FILTER pattern] [AARCH64_FILTER pattern] SOURCES file...):
# a test program of these files, and an entry of ctest for each of its shards: a process that runs every n-th case. An
# entry should take minutes at most with sanitizers, and there should be enough of them for all cores. EMULATED_FILTER:
# the cases that use a device, if the others would take long where devices are emulated. TSAN_FILTER: the cases that run
# with the thread sanitizer. AARCH64_FILTER: the cases that run where the processor is emulated.
# LABELS tsan: it also runs with the thread sanitizer. LABELS emulated: it also runs with emulated devices. LABELS
# aarch64: it also runs with an emulated processor. SERIAL: it runs while nothing else does.
function(gpups_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SERIAL" "SHARDS;EMULATED_FILTER;TSAN_FILTER;AARCH64_FILTER"
    "LABELS;LIBRARIES;SOURCES")
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  gpups_test_target(${name} ${arg_LIBRARIES})
  if(GPUPS_UNITY)
    gpups_paths(paths ${name})
    list(FILTER paths INCLUDE REGEX "\\.cpp$")
    gpups_unite(${name} ${GPUPS_UNITY_TESTS} PATHS ${paths})
    target_precompile_headers(${name} REUSE_FROM gpups_test_headers)
  endif()
  if(NOT arg_SHARDS)
    set(arg_SHARDS 1)
  endif()
  set(filter "")
  if(GPUPS_EMULATED)
    set(filter ${arg_EMULATED_FILTER})
  elseif(GPUPS_SANITIZE MATCHES thread)
    set(filter ${arg_TSAN_FILTER})
  elseif(CMAKE_CROSSCOMPILING)
    set(filter ${arg_AARCH64_FILTER})
  endif()
  math(EXPR entries "${arg_SHARDS} * ${test_runs}")
  foreach(number RANGE 1 ${entries})
    set(entry ${name})
    if(entries GREATER 1)
      set(entry ${name}.${number})
    endif()
    math(EXPR index "(${number} - 1) % ${arg_SHARDS}")
    math(EXPR run "(${number} - 1) / ${arg_SHARDS}")
    add_test(NAME ${entry} COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tools/run_cases.py
      ${PROJECT_BINARY_DIR}/tests/results/${entry}.jsonl $<TARGET_FILE:${name}> ${filter})
    set(labels cases ${arg_LABELS})
    set(environment GTEST_TOTAL_SHARDS=${arg_SHARDS} GTEST_SHARD_INDEX=${index} ${test_environment})
    if(GPUPS_EMULATED)
      math(EXPR seed "${run} + 1")
      list(APPEND environment GPUPS_EMULATOR=devices=4,lazy=1,seed=${seed},resident=4)
    elseif(CMAKE_CROSSCOMPILING)
      list(GET test_levels ${run} level)
      list(APPEND environment GPUPS_HOST_LEVEL=${level})
    endif()
    set_tests_properties(${entry} PROPERTIES LABELS "${labels}" RUN_SERIAL ${arg_SERIAL} ENVIRONMENT "${environment}"
      TIMEOUT 7200)  # run_cases.py ends single cases that take too long
  endforeach()
  foreach(label IN LISTS arg_LABELS)
    add_dependencies(${label}_tests ${name})
  endforeach()
endfunction()
