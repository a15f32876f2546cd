# SPDX-License-Identifier: Apache-2.0
# Finds NCCL as nccl::nccl, in the folders of the CUDA toolkit or the system.
find_path(NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
mark_as_advanced(NCCL_INCLUDE NCCL_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(nccl REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE)
if(nccl_FOUND AND NOT TARGET nccl::nccl)
  add_library(nccl::nccl UNKNOWN IMPORTED)
  set_target_properties(nccl::nccl PROPERTIES IMPORTED_LOCATION ${NCCL_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES "${NCCL_INCLUDE};${CUDAToolkit_INCLUDE_DIRS}")
endif()
