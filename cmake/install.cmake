# cmake --install: the library with its headers, the program with its manual page and completions, and
# what find_package(moehub) reads.
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
if(MOEHUB_SHELL)
  install(FILES ${MOEHUB_SHELL}/moehub.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${MOEHUB_SHELL}/moehub.bash RENAME moehub
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${MOEHUB_SHELL}/_moehub DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
  install(FILES ${MOEHUB_SHELL}/moehub.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()
