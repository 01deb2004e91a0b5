# cmake -DOUT=file.cpp -DDIR=the source folder -P write_checksum.cmake
file(GLOB_RECURSE files RELATIVE ${DIR} ${DIR}/src/* ${DIR}/include/* ${DIR}/presets/*)
list(SORT files)
set(all "")
foreach(file IN LISTS files)
  file(SHA256 ${DIR}/${file} sum)
  string(APPEND all "${file} ${sum}\n")
endforeach()
string(SHA256 checksum "${all}")
string(SUBSTRING ${checksum} 0 12 checksum)
file(WRITE ${OUT} "#include \"base/source_checksum.hpp\"

namespace moehub {

std::string_view source_checksum() {
    return \"${checksum}\";
}

}  // namespace moehub
")
