# SPDX-License-Identifier: Apache-2.0
# With GPUPS_UNITY, consecutive sources of a top folder are compiled together, so that headers are parsed, and templates
# instantiated, once for all of them; so is the host code of the kernels of a room (kernels.cmake). This takes about
# three fifths of the time. Each source compiles alone too, with only what it includes.
set(GPUPS_UNITY_SOURCES 20)
set(GPUPS_UNITY_TESTS 4)  # of a test program, from several folders
set(GPUPS_STANDARD_HEADERS <algorithm> <chrono> <cmath> <cstdint> <cstring> <deque> <filesystem> <functional> <map>
  <memory> <mutex> <optional> <set> <span> <string> <thread> <utility> <vector> <fmt/format.h>)

# gpups_unite(target size [TOP_FOLDERS] PATHS path...): compiles `size` sources of the target together; with
# TOP_FOLDERS, only sources of the same top folder. Paths are relative to the project, also in the files that include
# them. CMake's own UNITY_BUILD includes absolute paths, so that a clone in another folder would find nothing in the
# compiler cache.
function(gpups_unite target size)
  cmake_parse_arguments(PARSE_ARGV 2 arg "TOP_FOLDERS" "" "PATHS")
  list(SORT arg_PATHS)
  set(units "")
  foreach(path IN LISTS arg_PATHS)
    foreach(property SKIP_PRECOMPILE_HEADERS COMPILE_DEFINITIONS)
      get_source_file_property(alone ${PROJECT_SOURCE_DIR}/${path} TARGET_DIRECTORY ${target} ${property})
      if(alone)
        break()
      endif()
    endforeach()
    if(alone)
      continue()  # it has flags of its own
    endif()
    set(name unit)
    if(arg_TOP_FOLDERS)
      string(REGEX MATCH "^[a-z]+" name ${path})
    endif()
    if(NOT DEFINED count_${name})
      set(count_${name} 0)
    endif()
    math(EXPR number "${count_${name}} / ${size}")
    math(EXPR count_${name} "${count_${name}} + 1")
    set(unit ${name}_${number})
    list(APPEND units ${unit})
    string(APPEND text_${unit} "#include \"${path}\"\n")
    set_source_files_properties(${PROJECT_SOURCE_DIR}/${path} TARGET_DIRECTORY ${target} PROPERTIES HEADER_FILE_ONLY ON)
  endforeach()
  list(REMOVE_DUPLICATES units)
  foreach(unit IN LISTS units)
    set(source ${PROJECT_BINARY_DIR}/unity/${target}/${unit}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "${text_${unit}}" @ONLY)
    target_sources(${target} PRIVATE ${source})
  endforeach()
  # Types of unnamed namespaces are still not visible in other objects.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()

# gpups_paths(result target): the target's sources, as paths relative to the project; generated ones begin with "..".
function(gpups_paths result target)
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  list(TRANSFORM sources STRIP)
  set(paths "")
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder} NORMALIZE)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    list(APPEND paths ${source})
  endforeach()
  set(${result} ${paths} PARENT_SCOPE)
endfunction()

# gpups_unity(target [PARSED_ONCE header...]): with GPUPS_UNITY, unites the host sources of the target that are no
# kernels. PARSED_ONCE: the headers of most sources of a target with many compilations.
function(gpups_unity target)
  if(NOT GPUPS_UNITY)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "PARSED_ONCE")
  gpups_paths(paths ${target})
  # Others are generated, or kernels.
  list(FILTER paths INCLUDE REGEX "^(comm|cache|trainer|tools|kernels/runtime)/.*\\.cpp$")
  gpups_unite(${target} ${GPUPS_UNITY_SOURCES} TOP_FOLDERS PATHS ${paths})
  if(arg_PARSED_ONCE)
    list(TRANSFORM arg_PARSED_ONCE REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:\\1>")
    target_precompile_headers(${target} PRIVATE ${arg_PARSED_ONCE})
  endif()
  # With more memory before it is collected, a long compilation takes a tenth less time.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-expand=200>)
endfunction()
