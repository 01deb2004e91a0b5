# Which sources a program was built from: generates source_checksum.cpp, which defines
# moehub::source_checksum() (src/base/source_checksum.hpp). Made anew when one of them changes; only
# that small file is compiled for it.
set(MOEHUB_CHECKSUM_CPP ${PROJECT_BINARY_DIR}/source_checksum.cpp)
file(GLOB_RECURSE MOEHUB_CHECKSUM_FILES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*
  ${PROJECT_SOURCE_DIR}/include/* ${PROJECT_SOURCE_DIR}/presets/*)
add_custom_command(
  OUTPUT ${MOEHUB_CHECKSUM_CPP}
  COMMAND ${CMAKE_COMMAND} -DOUT=${MOEHUB_CHECKSUM_CPP} -DDIR=${PROJECT_SOURCE_DIR}
          -P ${PROJECT_SOURCE_DIR}/cmake/write_checksum.cmake
  DEPENDS ${MOEHUB_CHECKSUM_FILES} ${PROJECT_SOURCE_DIR}/cmake/write_checksum.cmake
  VERBATIM)
