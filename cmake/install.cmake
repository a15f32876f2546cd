# SPDX-License-Identifier: Apache-2.0
# The package: find_package(gpups) defines gpups::gpups, the library, and gpups::kernels, the interface of its kernels.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/gpups)

# The headers of kernels are installed in another folder, so that <prefix>/include has no folder "kernels". Code that
# calls kernels links gpups::kernels, and includes "kernels/rows/copy_rows.hpp" like the trainer.
set(kernels_folder ${CMAKE_INSTALL_INCLUDEDIR}/gpups-kernels)
add_library(gpups_lower_face INTERFACE)
set_target_properties(gpups_lower_face PROPERTIES EXPORT_NAME kernels)
target_include_directories(gpups_lower_face INTERFACE $<INSTALL_INTERFACE:${kernels_folder}>)
target_link_libraries(gpups_lower_face INTERFACE gpups fmt::fmt)
install(DIRECTORY kernels/ DESTINATION ${kernels_folder}/kernels FILES_MATCHING PATTERN "*.hpp")
install(FILES ${PROJECT_BINARY_DIR}/kernels/base/build_config.hpp DESTINATION ${kernels_folder}/kernels/base)

install(DIRECTORY include/gpups DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
install(TARGETS gpups gpups_lower_face EXPORT gpups ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT gpups NAMESPACE gpups:: FILE gpupsTargets.cmake DESTINATION ${package_folder})

configure_package_config_file(cmake/gpupsConfig.cmake.in ${PROJECT_BINARY_DIR}/gpupsConfig.cmake
  INSTALL_DESTINATION ${package_folder})
# Before 1.0, a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gpupsConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gpupsConfig.cmake ${PROJECT_BINARY_DIR}/gpupsConfigVersion.cmake
  cmake/FindoneDNN.cmake cmake/Findhwloc.cmake cmake/Findnccl.cmake
  cmake/Findpmix.cmake cmake/Findxxhash.cmake DESTINATION ${package_folder})
