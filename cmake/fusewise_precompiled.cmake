# Headers that most files include are parsed once for all rooms, and once more for all tests: a fifth less time
# for a whole build. Every file still includes what it uses; a build with FUSEWISE_PRECOMPILE=OFF shows that.
option(FUSEWISE_PRECOMPILE "Parse common headers once" ON)

set(FUSEWISE_COMMON_HEADERS
  <fmt/format.h> <algorithm> <array> <cmath> <cstdint> <cstring> <filesystem> <functional> <map> <memory> <numeric>
  <optional> <set> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector>)

# fusewise_precompiled(NAME LIBRARY... HEADERS HEADER...): the target NAME, whose precompiled headers others use
# by fusewise_use_precompiled(). Both have to be compiled with the same options.
function(fusewise_precompiled name)
  cmake_parse_arguments(PARSE_ARGV 1 given "" "" "HEADERS")
  if(NOT FUSEWISE_PRECOMPILE)
    return()
  endif()
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/${name}.cpp" CONTENT "// Only precompiled headers are made from this.\n")
  add_library(${name} OBJECT "${CMAKE_BINARY_DIR}/${name}.cpp")
  target_link_libraries(${name} PRIVATE ${given_UNPARSED_ARGUMENTS})
  target_compile_options(${name} PRIVATE ${FUSEWISE_WARNINGS})
  target_precompile_headers(${name} PRIVATE ${given_HEADERS})
endfunction()

function(fusewise_use_precompiled target name)
  if(FUSEWISE_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()

# Files with options of their own do not fit the precompiled headers.
function(fusewise_file_options file)
  set_source_files_properties("${CMAKE_SOURCE_DIR}/${file}" PROPERTIES
    COMPILE_OPTIONS "${ARGN}" SKIP_PRECOMPILE_HEADERS ON)
endfunction()
