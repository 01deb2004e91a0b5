# cmake -DOUT=programs.cpp -DDIR=src/systems -P embed_programs.cmake
file(GLOB files RELATIVE ${DIR} ${DIR}/*.cpp ${DIR}/*/*.cpp)
list(SORT files)
set(rows "")
foreach(file IN LISTS files)
  file(READ ${DIR}/${file} text)
  string(APPEND rows "    if (file == \"${file}\") return R\"_cpp_(${text})_cpp_\";\n")
endforeach()
file(WRITE ${OUT} "#include \"systems/programs.hpp\"

namespace moehub::systems {

std::string program_text(std::string_view file) {
${rows}    return {};
}

}  // namespace moehub::systems
")
