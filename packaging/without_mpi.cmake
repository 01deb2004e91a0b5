# Read by cpack: the libraries that the package depends on are found without Open MPI's. CPack runs
# the words of this variable, and has no option for it; tests/package sees whether it still does.
set(SHLIBDEPS_EXECUTABLE dpkg-shlibdeps -xlibopenmpi3)
