# cmake -DBUILD=build -DSOURCE=moehub -DWORK=folder -DVERSION=… -P package.cmake
# Makes the Debian package, looks into it, and runs the program out of it.
function(must)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE printed)
  set(printed "${printed}" PARENT_SCOPE)
endfunction()
function(expect what pattern)
  if(NOT printed MATCHES "${pattern}")
    message(FATAL_ERROR "${what}: found\n${printed}\nallowed: what matches ${pattern}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})
must(${CMAKE_CPACK_COMMAND} --config ${BUILD}/CPackConfig.cmake -B ${WORK})
file(GLOB deb ${WORK}/moehub_*.deb)
list(LENGTH deb count)
if(NOT count EQUAL 1)
  message(FATAL_ERROR "packages: found ${deb}, allowed: one")
endif()

must(dpkg-deb --field ${deb} Package Version Architecture Depends)
expect("name and version" "Package: moehub\nVersion: ${VERSION}\n")
expect("libraries" "Depends: .*libc6 .*libfmt9")
if(printed MATCHES "openmpi")
  message(FATAL_ERROR "libraries: found\n${printed}\nallowed: none of MPI, which is suggested")
endif()
must(dpkg-deb --contents ${deb})
foreach(path /usr/bin/moehub /usr/lib/[^/]*/libmoehub.a /usr/lib/[^/]*/cmake/moehub/moehubConfig.cmake
    /usr/lib/[^/]*/moehub/libmoehub_mpi.so
    /usr/lib/python3/dist-packages/moehub/__init__.py
    /usr/lib/python3/dist-packages/moehub/_functions.py
    /usr/lib/python3/dist-packages/moehub/_moehub[^/]*.so
    /usr/share/man/man1/moehub.1 /usr/share/bash-completion/completions/moehub
    /usr/share/zsh/vendor-completions/_moehub /usr/share/fish/vendor_completions.d/moehub.fish
    /usr/include/moehub/layer.hpp /usr/share/doc/moehub/copyright /usr/share/doc/moehub/changelog.gz)
  expect("files" "\\.${path}\n")
endforeach()
if(printed MATCHES " \\./(usr/local|home|root|tmp|work)")
  message(FATAL_ERROR "files outside of /usr:\n${printed}")
endif()

must(dpkg-deb -x ${deb} ${WORK}/root)
# Every measurement, preset and example that a page names is there, where the page says.
set(doc ${WORK}/root/usr/share/doc/moehub)
file(GLOB_RECURSE pages ${doc}/docs/*.md ${doc}/README.md)
set(named "")
foreach(page ${pages})
  file(READ ${page} text)
  string(REGEX MATCHALL "(validation|presets|examples)/[A-Za-z0-9_/-]+\\.(csv|toml|cpp|py)" found "${text}")
  list(APPEND named ${found})
endforeach()
list(REMOVE_DUPLICATES named)
list(LENGTH named count)
if(count LESS 20)
  message(FATAL_ERROR "files that pages name: found ${count}, allowed: 20 or more")
endif()
foreach(file ${named})
  if(NOT EXISTS ${doc}/${file} AND EXISTS ${SOURCE}/${file})
    message(FATAL_ERROR "the package lacks ${file}, which a page names")
  endif()
endforeach()
must(${WORK}/root/usr/bin/moehub --version)
expect("the program" "^moehub ${VERSION}\n$")
must(${WORK}/root/usr/bin/moehub compare --systems ideal,moe-hub --tokens 256)
expect("a comparison" "moe-hub ")
find_program(mpirun mpirun REQUIRED)
must(${CMAKE_COMMAND} -E env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  ${mpirun} --oversubscribe -n 2 ${WORK}/root/usr/bin/moehub sweep --sweep tokens=64,128
  --systems ideal -o ${WORK}/swept.sqlite --csv ${WORK}/swept.csv)
file(STRINGS ${WORK}/swept.csv printed)
expect("a sweep under MPI" "64,ideal,.*128,ideal,")
