# SPDX-License-Identifier: Apache-2.0
# gpups_unity(target): with GPUPS_UNITY, a dozen sources of a folder are compiled together, and the headers of the
# standard library are parsed once for all of them. This takes about half the time. Each source compiles alone too, with
# only what it includes, and kernels always do.
set(GPUPS_UNITY_SOURCES 12)
set(GPUPS_PARSED_ONCE <algorithm> <chrono> <cmath> <cstdint> <cstring> <deque> <filesystem> <functional> <map> <memory>
  <mutex> <optional> <set> <span> <string> <thread> <utility> <vector> <fmt/format.h>)

function(gpups_unity target)
  if(NOT GPUPS_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  list(TRANSFORM sources STRIP)
  set(paths "")
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder} NORMALIZE)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    list(APPEND paths ${source})
  endforeach()
  list(SORT paths)
  foreach(path IN LISTS paths)
    if(NOT path MATCHES "^(comm|cache|trainer|tools)/")  # generated, or a kernel
      continue()
    endif()
    cmake_path(GET path PARENT_PATH name)
    string(REPLACE "/" "_" name ${name})
    if(NOT DEFINED count_${name})
      set(count_${name} 0)
    endif()
    math(EXPR group "${count_${name}} / ${GPUPS_UNITY_SOURCES}")
    math(EXPR count_${name} "${count_${name}} + 1")
    set_source_files_properties(${PROJECT_SOURCE_DIR}/${path} TARGET_DIRECTORY ${target}
      PROPERTIES UNITY_GROUP ${name}_${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  list(TRANSFORM GPUPS_PARSED_ONCE REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:\\1>" OUTPUT_VARIABLE headers)
  target_precompile_headers(${target} PRIVATE ${headers})
  # In a unity build, types of anonymous namespaces are still not visible in other objects.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()
