# cmake -DOUT=page_parts.cpp -DWEB=src/report/web -DECHARTS=echarts.min.js -P embed_page.cmake
function(text_of files out)
  set(all "")
  foreach(file IN LISTS files)
    file(READ ${file} text)
    string(APPEND all "${text}")
  endforeach()
  set(${out} "${all}" PARENT_SCOPE)
endfunction()

file(GLOB scripts ${WEB}/*.js)
file(GLOB styles ${WEB}/*.css)
list(SORT scripts)
list(SORT styles)
text_of("${scripts}" script)
text_of("${styles}" style)

set(packed "")
set(licence "")
if(ECHARTS)
  # A third of its size, which the page's script unpacks.
  execute_process(COMMAND gzip -9nc ${ECHARTS} COMMAND base64 -w0 OUTPUT_VARIABLE packed
    COMMAND_ERROR_IS_FATAL ANY)
  # Its licence's header stays readable.
  file(READ ${ECHARTS} head LIMIT 4000)
  if(NOT head MATCHES "/\\*(.*Licensed to the Apache Software Foundation.*under the License\\.)")
    message(FATAL_ERROR "${ECHARTS}: no licence found at its beginning, allowed: ECharts as published")
  endif()
  string(REGEX REPLACE "\n\\*+ ?" "\n" licence "${CMAKE_MATCH_1}")
  string(STRIP "${licence}" licence)
endif()

file(WRITE ${OUT} "#include \"report/answer_forms.hpp\"

namespace moehub {

std::string_view page_style() {
    return R\"_page_(${style})_page_\";
}

std::string_view page_script() {
    return R\"_page_(${script})_page_\";
}

std::string_view chart_library() {
    return \"${packed}\";
}

std::string_view chart_licence() {
    return R\"_page_(${licence})_page_\";
}

}  // namespace moehub
")
