# SPDX-License-Identifier: Apache-2.0
include(GoogleTest)

# UCX replaces mmap() as its library is loaded, and the thread sanitizer's programs crash at their first thread.
set(test_environment "")
if(GPUPS_SANITIZE MATCHES thread)
  set(test_environment UCX_MEM_EVENTS=no)
endif()

# gpups_tests(name [LABEL label] [SERIAL] [LIBRARIES library...] SOURCES file...): a test program of these files.
# LABEL tsan: it also runs with the thread sanitizer. SERIAL: it runs while nothing else does.
function(gpups_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SERIAL" "LABEL" "LIBRARIES;SOURCES")
  add_executable(${name} ${arg_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_link_libraries(${name} PRIVATE ${arg_LIBRARIES} gpups $<TARGET_NAME_IF_EXISTS:gpups_trainer>
    GTest::gtest_main GTest::gmock fmt::fmt gpups::flags)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES LABELS "${arg_LABEL}" RUN_SERIAL "${arg_SERIAL}"
    ENVIRONMENT "${test_environment}")
  if(arg_LABEL STREQUAL "tsan")
    add_dependencies(tsan_tests ${name})
  endif()
endfunction()
