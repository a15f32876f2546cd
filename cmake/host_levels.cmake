# SPDX-License-Identifier: Apache-2.0
# The instruction sets of the host code. With GPUPS_HOST_ARCH=portable, one build is fast on all processors of its
# architecture: all code is compiled for the oldest of them, and the kernels once more for each level below, from slow
# to fast. The program selects the best level that the processor has; see kernels/base/host_level.hpp.
set(GPUPS_HOST_ARCH portable CACHE STRING
  "Processors of the host code: portable (all; kernels select their instructions), or one, as in -march=")

if(NOT GPUPS_HOST_ARCH)
  message(FATAL_ERROR "GPUPS_HOST_ARCH is empty (kernels need AVX2 on x86-64): use portable, native or a processor")
endif()
set(GPUPS_HOST_MARCH ${GPUPS_HOST_ARCH})
set(GPUPS_HOST_LEVELS "")
set(GPUPS_ANY_HOST_FLAGS "")  # of code that runs before the program has checked its processor
if(GPUPS_HOST_ARCH STREQUAL "portable")
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
    set(GPUPS_HOST_MARCH x86-64-v3)
    set(GPUPS_ANY_HOST_FLAGS -march=x86-64)
    set(GPUPS_HOST_LEVELS x86-64-v4 x86-64-v4+vbmi2)
    set(GPUPS_HOST_FLAGS_x86-64-v4 -march=x86-64-v4)
    set(GPUPS_HOST_FLAGS_x86-64-v4+vbmi2 -march=x86-64-v4 -mavx512vbmi -mavx512vbmi2)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    set(GPUPS_HOST_MARCH armv8-a)
    set(GPUPS_HOST_LEVELS armv8.2-a+sve)
    set(GPUPS_HOST_FLAGS_armv8.2-a+sve -march=armv8.2-a+sve)
  else()
    message(FATAL_ERROR "the instruction sets of ${CMAKE_SYSTEM_PROCESSOR} are not known (GPUPS_HOST_ARCH is portable, "
      "which needs a list of them): add the list to cmake/host_levels.cmake, or use -DGPUPS_HOST_ARCH=native")
  endif()
endif()
list(LENGTH GPUPS_HOST_LEVELS GPUPS_HOST_LEVEL_COUNT)
list(TRANSFORM GPUPS_HOST_LEVELS APPEND "\"" OUTPUT_VARIABLE names)
list(TRANSFORM names PREPEND "\"")
list(PREPEND names "\"${GPUPS_HOST_MARCH}\"")
list(JOIN names ", " GPUPS_HOST_LEVEL_NAMES)

# The linker that joins the objects of a level: that of GNU, also for a compiler with another one.
if(GPUPS_HOST_LEVELS)
  set(GPUPS_JOINING_LINKER ${CMAKE_LINKER})
  if(CMAKE_LINKER MATCHES "lld")
    find_program(GPUPS_GNU_LINKER NAMES ld.bfd REQUIRED)
    set(GPUPS_JOINING_LINKER ${GPUPS_GNU_LINKER})
  endif()
endif()

# gpups_host_levels(target LIBRARIES library... SOURCES source...): compiles sources of the target, which are compiled
# for the oldest processor already, for each level, and adds the objects to the target.
#
# The compiler also emits inline functions and templates that a source uses, std::vector's for instance, and the linker
# keeps one copy of each. It must not be one with instructions that the processor lacks. So the objects of a level
# become one object, whose only global symbols are the instances of run_at() for the level.
function(gpups_host_levels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBRARIES;SOURCES")
  set(number 0)
  foreach(level IN LISTS GPUPS_HOST_LEVELS)
    math(EXPR number "${number} + 1")
    set(objects ${target}_level_${number})
    add_library(${objects} OBJECT ${arg_SOURCES})
    gpups_hidden(${objects})
    target_compile_definitions(${objects} PRIVATE GPUPS_COMPILED_LEVEL=${number})
    add_library(${objects}_flags INTERFACE)
    target_compile_options(${objects}_flags INTERFACE ${GPUPS_HOST_FLAGS_${level}}
      $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique> -fno-lto)  # other symbols would stay global
    target_include_directories(${objects} PRIVATE $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
    target_link_libraries(${objects} PRIVATE ${arg_LIBRARIES} ${objects}_flags)  # its flags come last
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${objects}.o)
    add_custom_command(OUTPUT ${object} DEPENDS ${objects} $<TARGET_OBJECTS:${objects}> COMMAND_EXPAND_LISTS VERBATIM
      COMMENT "Host code of kernels for ${level}"
      COMMAND ${GPUPS_JOINING_LINKER} -r --force-group-allocation -o ${object} $<TARGET_OBJECTS:${objects}>
      COMMAND ${CMAKE_OBJCOPY} --wildcard "--keep-global-symbol=*6run_atILi${number}E*" ${object})
    target_sources(${target} PRIVATE ${object})
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  endforeach()
endfunction()
