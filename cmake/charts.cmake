# Embeds what report pages are made of: src/report/web and Apache ECharts, which draws their charts.
# Generates page_parts.cpp, which defines the functions of src/report/answer_forms.hpp.
#
# ECharts comes from npm at configure time, in the one version that is named here, and is kept beside
# the presets' build folders, so that further ones do not fetch it again. Where it cannot be had, or
# another's project uses the library alone, the build is without charts, and --html says so.
set(MOEHUB_ECHARTS "" CACHE FILEPATH "echarts.min.js to embed; empty: version 6.1.0 from npm")
set(MOEHUB_ECHARTS_VERSION 6.1.0)
set(MOEHUB_ECHARTS_SHA256 b66b25aeb4df84e33199dc21694014d336d222cbd9deb0e5a7c14bd6aa0d0fd0)

# Puts dist/echarts.min.js of the package at `file`, whole or not at all: another build folder may be
# configured meanwhile.
function(moehub_fetch_echarts file)
  find_program(MOEHUB_NPM npm)
  if(NOT MOEHUB_NPM)
    message(STATUS "moehub: no npm, which fetches ECharts")
    return()
  endif()
  cmake_path(GET file PARENT_PATH folder)
  string(RANDOM LENGTH 12 unique)
  set(work ${folder}/fetching-${unique})
  file(REMOVE_RECURSE ${work})
  file(MAKE_DIRECTORY ${work})
  message(STATUS "Fetching ECharts ${MOEHUB_ECHARTS_VERSION} by npm")
  execute_process(COMMAND ${MOEHUB_NPM} pack --silent echarts@${MOEHUB_ECHARTS_VERSION}
    WORKING_DIRECTORY ${work} RESULT_VARIABLE failed OUTPUT_QUIET ERROR_VARIABLE why)
  if(failed)
    string(REGEX REPLACE "[ \n]+" " " why "${why}")
    message(STATUS "moehub: npm could not fetch echarts@${MOEHUB_ECHARTS_VERSION}: ${why}")
    file(REMOVE_RECURSE ${work})
    return()
  endif()
  file(ARCHIVE_EXTRACT INPUT ${work}/echarts-${MOEHUB_ECHARTS_VERSION}.tgz DESTINATION ${work})
  file(RENAME ${work}/package/dist/echarts.min.js ${file})
  file(REMOVE_RECURSE ${work})
endfunction()

set(MOEHUB_ECHARTS_JS ${MOEHUB_ECHARTS})
if(NOT MOEHUB_ECHARTS_JS)
  set(MOEHUB_ECHARTS_JS ${PROJECT_SOURCE_DIR}/build/npm/echarts-${MOEHUB_ECHARTS_VERSION}.min.js)
  if(PROJECT_IS_TOP_LEVEL AND NOT EXISTS ${MOEHUB_ECHARTS_JS})
    moehub_fetch_echarts(${MOEHUB_ECHARTS_JS})
  endif()
  if(EXISTS ${MOEHUB_ECHARTS_JS})
    file(SHA256 ${MOEHUB_ECHARTS_JS} found)
  else()
    set(MOEHUB_ECHARTS_JS "")
    message(STATUS "moehub: --html is left out of this build: for its charts install npm, or name "
      "the file by -DMOEHUB_ECHARTS=/path/echarts.min.js")
  endif()
  if(MOEHUB_ECHARTS_JS AND NOT found STREQUAL MOEHUB_ECHARTS_SHA256)
    message(FATAL_ERROR "moehub: ${MOEHUB_ECHARTS_JS} is not echarts ${MOEHUB_ECHARTS_VERSION}: found "
      "SHA-256 ${found}, allowed: ${MOEHUB_ECHARTS_SHA256}; remove it to fetch it again")
  endif()
elseif(NOT EXISTS ${MOEHUB_ECHARTS_JS})
  message(FATAL_ERROR "MOEHUB_ECHARTS: found ${MOEHUB_ECHARTS_JS}, which is not there, allowed: a file")
endif()

set(MOEHUB_PAGE_PARTS_CPP ${PROJECT_BINARY_DIR}/page_parts.cpp)
set(MOEHUB_WEB ${PROJECT_SOURCE_DIR}/src/report/web)
file(GLOB MOEHUB_WEB_FILES CONFIGURE_DEPENDS ${MOEHUB_WEB}/*.js ${MOEHUB_WEB}/*.css)
add_custom_command(
  OUTPUT ${MOEHUB_PAGE_PARTS_CPP}
  COMMAND ${CMAKE_COMMAND} -DOUT=${MOEHUB_PAGE_PARTS_CPP} -DWEB=${MOEHUB_WEB}
          -DECHARTS=${MOEHUB_ECHARTS_JS} -P ${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake
  DEPENDS ${MOEHUB_WEB_FILES} ${MOEHUB_ECHARTS_JS} ${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake
  VERBATIM)
