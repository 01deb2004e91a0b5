# cmake -DBUILD=build -DWORK=folder -DCOMPILER=c++ -P installed.cmake
# Installs moehub into a folder of its own, then builds and runs a project that finds it there.
set(prefix ${WORK}/prefix)
set(project ${WORK}/project)
function(must)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK})
must(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
must(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR} -B ${project}
  -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_CXX_COMPILER=${COMPILER})
must(${CMAKE_COMMAND} --build ${project})
must(${project}/consumer)
must(${prefix}/bin/moehub --version)
