# SPDX-License-Identifier: Apache-2.0
# gpups_unity(target [PARSED_ONCE header...]): with GPUPS_UNITY, consecutive sources of a top folder are compiled
# together, so that headers are parsed, and templates instantiated, once for all of them. This takes about half the
# time. Each source compiles alone too, with only what it includes, and kernels always do. PARSED_ONCE: the headers of
# most sources of a target with many compilations.
set(GPUPS_UNITY_SOURCES 20)
set(GPUPS_STANDARD_HEADERS <algorithm> <chrono> <cmath> <cstdint> <cstring> <deque> <filesystem> <functional> <map>
  <memory> <mutex> <optional> <set> <span> <string> <thread> <utility> <vector> <fmt/format.h>)

function(gpups_unity target)
  if(NOT GPUPS_UNITY)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "PARSED_ONCE")
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  list(TRANSFORM sources STRIP)
  set(paths "")
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder} NORMALIZE)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    list(APPEND paths ${source})
  endforeach()
  list(FILTER paths INCLUDE REGEX "^(comm|cache|trainer|tools|kernels/runtime)/.*\\.cpp$")  # not: generated, a kernel
  list(SORT paths)
  foreach(path IN LISTS paths)
    string(REGEX MATCH "^[a-z]+" name ${path})
    if(NOT DEFINED count_${name})
      set(count_${name} 0)
    endif()
    math(EXPR group "${count_${name}} / ${GPUPS_UNITY_SOURCES}")
    math(EXPR count_${name} "${count_${name}} + 1")
    set_source_files_properties(${PROJECT_SOURCE_DIR}/${path} TARGET_DIRECTORY ${target}
      PROPERTIES UNITY_GROUP ${name}_${group})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(arg_PARSED_ONCE)
    list(TRANSFORM arg_PARSED_ONCE REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:\\1>")
    target_precompile_headers(${target} PRIVATE ${arg_PARSED_ONCE})
  endif()
  # In a unity build, types of anonymous namespaces are still not visible in other objects.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>
    # With more memory before it is collected, a long compilation takes a tenth less time.
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-expand=200>)
endfunction()
