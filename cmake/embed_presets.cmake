# cmake -DOUT=presets.cpp -DDIR=presets -P embed_presets.cmake
file(GLOB files RELATIVE ${DIR} ${DIR}/*/*.toml)
list(SORT files)
set(rows "")
foreach(file IN LISTS files)
  file(READ ${DIR}/${file} text)
  get_filename_component(kind ${file} DIRECTORY)
  string(REGEX REPLACE "^.*/(.*)\\.toml$" "\\1" name ${file})
  string(APPEND rows "    {\"${kind}\", \"${name}\", R\"_toml_(${text})_toml_\"},\n")
endforeach()
file(WRITE ${OUT} "#include \"model/presets.hpp\"

namespace moehub {

static constexpr EmbeddedPreset kPresets[] = {
${rows}};

std::span<const EmbeddedPreset> embedded_presets() {
    return kPresets;
}

}  // namespace moehub
")
