# cmake --install: the library with its headers, the program, and what find_package(moehub) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(MOEHUB_CONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/moehub)
install(TARGETS moehub_core EXPORT moehubTargets ARCHIVE)
install(TARGETS moehub RUNTIME)
if(TARGET moehub_mpi)
  install(TARGETS moehub_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/moehub)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/moehub DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT moehubTargets NAMESPACE moehub:: DESTINATION ${MOEHUB_CONFIG_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/moehubConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/moehubConfig.cmake
  ${PROJECT_BINARY_DIR}/moehubConfigVersion.cmake DESTINATION ${MOEHUB_CONFIG_DIR})
