# find_package(moehub): the target moehub::moehub. The library is static, so what it uses must be
# there to link; fmt, yaml-cpp, CBC, METIS, SQLite and zlib are Debian's libfmt-dev, libyaml-cpp-dev,
# coinor-libcbc-dev, libmetis-dev, libsqlite3-dev and zlib1g-dev.
include(CMakeFindDependencyMacro)
find_dependency(fmt)
find_dependency(Threads)
find_dependency(yaml-cpp)
find_dependency(SQLite3)
find_dependency(ZLIB)
find_dependency(PkgConfig)
if(NOT TARGET PkgConfig::cbc)
  pkg_check_modules(cbc QUIET IMPORTED_TARGET cbc)
  if(NOT cbc_FOUND)
    set(moehub_FOUND FALSE)
    set(moehub_NOT_FOUND_MESSAGE "moehub needs CBC (Debian: coinor-libcbc-dev)")
    return()
  endif()
endif()
include(${CMAKE_CURRENT_LIST_DIR}/moehubTargets.cmake)
