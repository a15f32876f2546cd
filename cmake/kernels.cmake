# SPDX-License-Identifier: Apache-2.0
# gpups_kernels(target NAME...): adds kernels/NAME.cu to the target, as a host object made by the C++ compiler (from a
# generated one-line file) and, with CUDA, as a device object made by nvcc. Sets GPUPS_KERNEL_HOST_SOURCES to the list
# of the generated files.
function(gpups_kernels target)
  set(hosts "")
  foreach(name IN LISTS ARGN)
    set(body ${CMAKE_CURRENT_SOURCE_DIR}/${name}.cu)
    set(host ${CMAKE_CURRENT_BINARY_DIR}/host/${name}.cpp)
    file(RELATIVE_PATH included ${PROJECT_SOURCE_DIR} ${body})
    file(CONFIGURE OUTPUT ${host} CONTENT "#include \"@included@\"\n" @ONLY)
    target_sources(${target} PRIVATE ${host})
    list(APPEND hosts ${host})
    if(GPUPS_HAS_CUDA)
      target_sources(${target} PRIVATE ${body})
    endif()
  endforeach()
  set(GPUPS_KERNEL_HOST_SOURCES ${hosts} PARENT_SCOPE)
endfunction()
