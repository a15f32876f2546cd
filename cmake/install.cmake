# SPDX-License-Identifier: Apache-2.0
# The package, in two components. runtime: gpu_train and the shared library, if it is built. development: the public
# headers, the static library, and what CMake and pkg-config need to find the library.
#
#   cmake --install build/release --prefix FOLDER [--component runtime]
#
# find_package(gpups) defines gpups::gpups: the shared library if it is installed, else the static one; and
# find_package(gpups COMPONENTS static) the static one. A program that links the static library needs the libraries with
# which libgpups is linked, see gpups_links(), but not their headers.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/gpups)

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development)
install(DIRECTORY include/gpups DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
  FILES_MATCHING PATTERN "*.hpp")
install(TARGETS gpups EXPORT gpups_static ARCHIVE COMPONENT development
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT gpups_static NAMESPACE gpups:: FILE gpupsStatic.cmake DESTINATION ${package_folder}
  COMPONENT development)

# The shared library. Objects are position-independent, so those of the static library serve. Before 1.0, a minor
# version may change the interface.
if(BUILD_SHARED_LIBS)
  file(CONFIGURE OUTPUT shared.cpp CONTENT "")
  add_library(gpups_shared SHARED ${PROJECT_BINARY_DIR}/shared.cpp)
  add_library(gpups::gpups ALIAS gpups_shared)
  target_include_directories(gpups_shared INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  target_compile_features(gpups_shared INTERFACE cxx_std_20)
  target_link_libraries(gpups_shared PRIVATE $<BUILD_INTERFACE:$<LINK_LIBRARY:WHOLE_ARCHIVE,gpups>>)
  # Instances of templates of the standard library and others are visible in objects.
  target_link_options(gpups_shared PRIVATE LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/exports.map)
  set_target_properties(gpups_shared PROPERTIES OUTPUT_NAME gpups EXPORT_NAME gpups VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
  install(TARGETS gpups_shared EXPORT gpups_shared
    LIBRARY COMPONENT runtime NAMELINK_COMPONENT development INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT gpups_shared NAMESPACE gpups:: FILE gpupsShared.cmake DESTINATION ${package_folder}
    COMPONENT development)
else()
  add_library(gpups::gpups ALIAS gpups)
endif()

# What the static library is linked with: names, and folders in which a linker does not search by itself.
get_property(names GLOBAL PROPERTY GPUPS_LINKED_NAMES)
get_property(folders GLOBAL PROPERTY GPUPS_LINKED_FOLDERS)
set(folders $<FILTER:$<REMOVE_DUPLICATES:${folders}>,EXCLUDE,^/\(usr/\)?lib\(/${CMAKE_LIBRARY_ARCHITECTURE}\)?$>)
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/gpupsStaticLinks.cmake CONTENT
  "set(gpups_link_names ${names})\nset(gpups_link_folders ${folders})\n")
list(JOIN names " -l" links)
set(links "$<$<BOOL:${folders}>:-L$<JOIN:${folders}, -L> >-l${links} -pthread")
set(private_links "")
if(BUILD_SHARED_LIBS)
  set(private_links ${links})
  set(links "")
endif()
file(RELATIVE_PATH prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" prefix ${prefix})
configure_file(cmake/gpups.pc.in gpups.pc.in @ONLY)
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/gpups.pc INPUT ${PROJECT_BINARY_DIR}/gpups.pc.in)
install(FILES ${PROJECT_BINARY_DIR}/gpups.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

configure_package_config_file(cmake/gpupsConfig.cmake.in ${PROJECT_BINARY_DIR}/gpupsConfig.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gpupsConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/gpupsConfig.cmake ${PROJECT_BINARY_DIR}/gpupsConfigVersion.cmake
  ${PROJECT_BINARY_DIR}/gpupsStaticLinks.cmake DESTINATION ${package_folder} COMPONENT development)
