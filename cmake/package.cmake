# cmake --build build/release --target package: moehub_VERSION_ARCH.deb, everything that install
# rules install, under /usr. packaging/try_deb tries it in a bare Debian.
include(GNUInstallDirs)

# What Debian asks of a package's documentation: its copyright, and a changelog in its own form.
set(MOEHUB_DEB ${PROJECT_BINARY_DIR}/packaging)
configure_file(${PROJECT_SOURCE_DIR}/packaging/changelog.in ${MOEHUB_DEB}/changelog @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/packaging/copyright ${MOEHUB_DEB}/copyright COPYONLY)
execute_process(COMMAND gzip -9nkf ${MOEHUB_DEB}/changelog COMMAND_ERROR_IS_FATAL ANY)
install(FILES ${MOEHUB_DEB}/changelog.gz ${MOEHUB_DEB}/copyright
  ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR}
  FILES_MATCHING PATTERN *.md PATTERN *.png)
# Files that pages' commands name: `moehub validate validation/…` runs in that folder.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples ${PROJECT_SOURCE_DIR}/presets
  ${PROJECT_SOURCE_DIR}/validation DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME moehub)
set(CPACK_PACKAGE_CONTACT "moehub maintainers <maintainers@moehub.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "simulator, planner and placer of Mixture-of-Experts systems")
set(CPACK_PACKAGE_DESCRIPTION
"moehub simulates Mixture-of-Experts layers, models and training steps on many
GPUs, packet by packet, under today's software and under proposed hardware;
places experts on GPUs from recorded routing, in the files that servers load;
and plans training runs.
.
It holds the program, the C++ library with its headers and what CMake's
find_package needs, and the Python module.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_MONOLITHIC_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/prerm)
# The program needs its libraries alone; the Python module its interpreter; who links the static
# library, what it uses.
if(TARGET _moehub)
  math(EXPR next "${Python3_VERSION_MINOR} + 1")
  set(CPACK_DEBIAN_PACKAGE_RECOMMENDS
    "python3 (>= 3.${Python3_VERSION_MINOR}), python3 (<< 3.${next}), python3-numpy")
endif()
# The MPI module is loaded where mpirun starts the program, which brings Open MPI's library.
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/packaging/without_mpi.cmake)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS
  "openmpi-bin, cmake, g++, pkg-config, libfmt-dev, libyaml-cpp-dev, coinor-libcbc-dev, zlib1g-dev, libmetis-dev, libsqlite3-dev")
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
include(CPack)
