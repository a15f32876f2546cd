# SPDX-License-Identifier: Apache-2.0
# oneDNN, made with GNU's OpenMP, as onednn::onednn. Installed with the package too: the static library needs it to
# link. oneDNN's own package file asks for OpenCL's headers, which are needed for GPUs that gpups does not use.
find_path(ONEDNN_INCLUDE dnnl.h)
find_library(ONEDNN_LIBRARY dnnl)
mark_as_advanced(ONEDNN_INCLUDE ONEDNN_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(oneDNN REQUIRED_VARS ONEDNN_LIBRARY ONEDNN_INCLUDE)
if(oneDNN_FOUND AND NOT TARGET onednn::onednn)
  add_library(onednn::onednn UNKNOWN IMPORTED)
  # gomp: the very runtime that oneDNN uses, to tell it how many threads it may. A compiler's flag for OpenMP could
  # bring another one.
  set_target_properties(onednn::onednn PROPERTIES
    IMPORTED_LOCATION ${ONEDNN_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${ONEDNN_INCLUDE}
    INTERFACE_LINK_LIBRARIES gomp)
endif()
