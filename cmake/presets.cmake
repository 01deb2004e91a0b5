# Embeds presets/<kind>/<name>.toml in the binary: generates presets.cpp, which defines
# moehub::embedded_presets() (src/model/presets.hpp).
set(MOEHUB_PRESETS_CPP ${PROJECT_BINARY_DIR}/presets.cpp)
file(GLOB MOEHUB_PRESET_FILES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/presets/*/*.toml)
add_custom_command(
  OUTPUT ${MOEHUB_PRESETS_CPP}
  COMMAND ${CMAKE_COMMAND} -DOUT=${MOEHUB_PRESETS_CPP} -DDIR=${PROJECT_SOURCE_DIR}/presets
          -P ${PROJECT_SOURCE_DIR}/cmake/embed_presets.cmake
  DEPENDS ${MOEHUB_PRESET_FILES} ${PROJECT_SOURCE_DIR}/cmake/embed_presets.cmake
  VERBATIM)
