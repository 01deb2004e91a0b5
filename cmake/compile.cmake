# How moehub's own targets are compiled; nothing of it reaches those who link the library.

# Half of a build's time is the optimiser's. -O2 does for most; src/sim has -O3, which moves packets
# a fifth to a quarter faster (bench/), and what asks and writes builds sooner with -O1. A level needs
# its own precompiled header: GCC takes that of another without a word, and then optimises less than
# asked.
if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
endif()
set(MOEHUB_UNHURRIED $<$<CONFIG:Release>:-O1>)
if(MOEHUB_SANITIZE)
  # With all its checks code takes clang twice as long to optimise as not to.
  set(MOEHUB_UNHURRIED -O0)
endif()

# Warnings are errors in the gate and not for users, whose compiler may know others than ours. The
# flag is read from a file, so that ./moehub and ./check, which differ in it, share their objects.
set(MOEHUB_WERROR_FLAGS ${PROJECT_BINARY_DIR}/werror.flags)
if(MOEHUB_WERROR)
  file(WRITE ${MOEHUB_WERROR_FLAGS} "-Werror\n")
else()
  file(WRITE ${MOEHUB_WERROR_FLAGS} "")
endif()

# -ffp-contract=off: the same bytes from GCC and clang.
function(moehub_compile target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wconversion -Wshadow @${MOEHUB_WERROR_FLAGS} -ffp-contract=off)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # Below -O3, GCC 12 sees copies of string literals overrun std::string's short buffer, which
    # they do not; which ones depends on their lengths.
    target_compile_options(${target} PRIVATE
      -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
  if(MOEHUB_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # In a file that is included GCC takes a coroutine's local types for a header's.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
  if(MOEHUB_SANITIZE)
    # clang 14 cannot compile coroutines with UBSan's function check.
    target_compile_options(${target} PRIVATE
      -fsanitize=${MOEHUB_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
      $<$<CXX_COMPILER_ID:Clang>:-fno-sanitize=function>)
    target_link_options(${target} PRIVATE -fsanitize=${MOEHUB_SANITIZE})
    target_compile_definitions(${target} PRIVATE MOEHUB_SANITIZED)
  endif()
endfunction()

# For those that Python's module is linked from, too. Hidden names cannot be replaced by another
# library's, so what is position-independent is inlined and called as directly as what is not.
function(moehub_position_independent target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# The headers that most files include; more may be named. Not nlohmann/json.hpp, whose cost is not
# the reading, nor <filesystem>, whose std::quoted gets in the way of ours.
function(moehub_precompile target)
  if(NOT MOEHUB_PCH)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE
    <algorithm> <array> <charconv> <chrono> <cmath> <coroutine> <cstdint> <functional>
    <limits> <map> <memory> <numeric> <optional> <set> <span> <string> <string_view> <tuple>
    <utility> <variant> <vector> <fmt/format.h> <fmt/ranges.h> ${ARGN})
endfunction()

# Compiles the files of each folder of src/ several at a time: reading headers is most of what a file
# costs. Names in the anonymous namespaces of a folder are therefore each used in one file of it.
function(moehub_unity target)
  if(NOT MOEHUB_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  get_target_property(files ${target} SOURCES)
  foreach(file ${files})
    if(NOT file MATCHES "^${PROJECT_SOURCE_DIR}/src/(.+)/[^/]+[.]cpp$")
      continue()
    endif()
    string(REPLACE "/" "_" folder ${CMAKE_MATCH_1})
    file(SIZE ${file} size)
    math(EXPR bytes_${folder} "0${bytes_${folder}} + ${size}")
    math(EXPR batch "${bytes_${folder}} / 40000")
    set_property(SOURCE ${file} PROPERTY UNITY_GROUP ${folder}_${batch})
  endforeach()
endfunction()

# Takes the files of these rooms out of MOEHUB_SOURCES and makes a library of objects of them.
macro(moehub_rooms target rooms)
  set(files ${MOEHUB_SOURCES})
  list(FILTER files INCLUDE REGEX "/src/(${rooms})/")
  list(FILTER MOEHUB_SOURCES EXCLUDE REGEX "/src/(${rooms})/")
  add_library(${target} OBJECT ${files})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_link_libraries(${target} PRIVATE fmt::fmt)
  moehub_compile(${target})
  moehub_position_independent(${target})
  moehub_unity(${target})
endmacro()
