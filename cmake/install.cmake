# cmake --install: the library with its headers, the program, and what find_package(moehub) reads.
include(GNUInstallDirs)
if(CMAKE_INSTALL_LIBDIR STREQUAL lib AND CMAKE_LIBRARY_ARCHITECTURE AND EXISTS /etc/debian_version)
  # Debian's place for libraries. CMake itself takes it under /usr alone, and packages are made in
  # builds that were configured for another prefix.
  set(CMAKE_INSTALL_LIBDIR lib/${CMAKE_LIBRARY_ARCHITECTURE})
endif()
include(CMakePackageConfigHelpers)
set(MOEHUB_CONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/moehub)
install(TARGETS moehub_core EXPORT moehubTargets ARCHIVE)
install(TARGETS moehub RUNTIME)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/moehub DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT moehubTargets NAMESPACE moehub:: DESTINATION ${MOEHUB_CONFIG_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/moehubConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/moehubConfig.cmake
  ${PROJECT_BINARY_DIR}/moehubConfigVersion.cmake DESTINATION ${MOEHUB_CONFIG_DIR})
