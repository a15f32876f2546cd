# SPDX-License-Identifier: Apache-2.0
# Finds oneDNN, built with GNU's OpenMP, as onednn::onednn. The package file of oneDNN requires headers of
# OpenCL, for GPUs that gpups does not use.
find_path(ONEDNN_INCLUDE dnnl.h)
find_library(ONEDNN_LIBRARY dnnl)
mark_as_advanced(ONEDNN_INCLUDE ONEDNN_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(oneDNN REQUIRED_VARS ONEDNN_LIBRARY ONEDNN_INCLUDE)
if(oneDNN_FOUND AND NOT TARGET onednn::onednn)
  add_library(onednn::onednn UNKNOWN IMPORTED)
  # gomp is the runtime that oneDNN uses; gpups sets the number of its threads. A compiler's flag for OpenMP could link
  # another runtime.
  set_target_properties(onednn::onednn PROPERTIES
    IMPORTED_LOCATION ${ONEDNN_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${ONEDNN_INCLUDE}
    INTERFACE_LINK_LIBRARIES gomp)
endif()
