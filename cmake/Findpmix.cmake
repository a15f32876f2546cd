# SPDX-License-Identifier: Apache-2.0
# Finds PMIx as pmix::pmix. With it, a launcher gives processes their ranks, and the processes exchange addresses.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_PMIX QUIET pmix)
endif()
find_path(PMIX_INCLUDE pmix.h HINTS ${PC_PMIX_INCLUDE_DIRS} PATH_SUFFIXES pmix
  PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/pmix2/include)
find_library(PMIX_LIBRARY pmix HINTS ${PC_PMIX_LIBRARY_DIRS} PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/pmix2/lib)
mark_as_advanced(PMIX_INCLUDE PMIX_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(pmix REQUIRED_VARS PMIX_LIBRARY PMIX_INCLUDE)
if(pmix_FOUND AND NOT TARGET pmix::pmix)
  add_library(pmix::pmix UNKNOWN IMPORTED)
  set_target_properties(pmix::pmix PROPERTIES
    IMPORTED_LOCATION ${PMIX_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${PMIX_INCLUDE})
endif()
