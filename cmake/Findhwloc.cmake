# SPDX-License-Identifier: Apache-2.0
# Finds hwloc as hwloc::hwloc.
find_path(HWLOC_INCLUDE hwloc.h)
find_library(HWLOC_LIBRARY hwloc)
mark_as_advanced(HWLOC_INCLUDE HWLOC_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(hwloc REQUIRED_VARS HWLOC_LIBRARY HWLOC_INCLUDE)
if(hwloc_FOUND AND NOT TARGET hwloc::hwloc)
  add_library(hwloc::hwloc UNKNOWN IMPORTED)
  set_target_properties(hwloc::hwloc PROPERTIES
    IMPORTED_LOCATION ${HWLOC_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${HWLOC_INCLUDE})
endif()
