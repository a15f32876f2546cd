# SPDX-License-Identifier: Apache-2.0
# How libgpups is compiled and linked.
# gpups_hidden(target): symbols of the target's objects are hidden, but for those with GPUPS_EXPORT
# (gpups/compiler.hpp), which the shared library exports.
function(gpups_hidden target)
  set_target_properties(${target} PROPERTIES
    CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# gpups_links(name target): links libgpups with a library. Programs that link the installed static library link `name`,
# without the package and the headers of that library; see install.cmake.
function(gpups_links name target)
  target_link_libraries(gpups PRIVATE $<BUILD_INTERFACE:${target}>)
  set_property(GLOBAL APPEND PROPERTY GPUPS_LINKED_NAMES ${name})
  set_property(GLOBAL APPEND PROPERTY GPUPS_LINKED_FOLDERS $<TARGET_LINKER_FILE_DIR:${target}>)
endfunction()
