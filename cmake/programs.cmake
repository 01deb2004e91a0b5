# Embeds the text of src/systems/*.cpp in the binary, so that it can show and count the programs:
# generates programs.cpp, which defines moehub::systems::program_text (src/systems/programs.hpp).
set(MOEHUB_PROGRAMS_CPP ${CMAKE_BINARY_DIR}/programs.cpp)
file(GLOB MOEHUB_PROGRAM_FILES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/systems/*/*.cpp)
add_custom_command(
  OUTPUT ${MOEHUB_PROGRAMS_CPP}
  COMMAND ${CMAKE_COMMAND} -DOUT=${MOEHUB_PROGRAMS_CPP} -DDIR=${CMAKE_SOURCE_DIR}/src/systems/moe
          -P ${CMAKE_SOURCE_DIR}/cmake/embed_programs.cmake
  DEPENDS ${MOEHUB_PROGRAM_FILES} ${CMAKE_SOURCE_DIR}/cmake/embed_programs.cmake
  VERBATIM)
