# Embeds the text of src/systems and its folders in the binary, so that it can show and count the programs:
# generates programs.cpp, which defines moehub::systems::program_text (src/systems/programs.hpp).
set(MOEHUB_PROGRAMS_CPP ${PROJECT_BINARY_DIR}/programs.cpp)
file(GLOB MOEHUB_PROGRAM_FILES CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/src/systems/*.cpp ${PROJECT_SOURCE_DIR}/src/systems/*/*.cpp)
add_custom_command(
  OUTPUT ${MOEHUB_PROGRAMS_CPP}
  COMMAND ${CMAKE_COMMAND} -DOUT=${MOEHUB_PROGRAMS_CPP} -DDIR=${PROJECT_SOURCE_DIR}/src/systems
          -P ${PROJECT_SOURCE_DIR}/cmake/embed_programs.cmake
  DEPENDS ${MOEHUB_PROGRAM_FILES} ${PROJECT_SOURCE_DIR}/cmake/embed_programs.cmake
  VERBATIM)
