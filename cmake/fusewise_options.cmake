# Compile options shared by every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")

# A product and a sum of the model's own operators are never contracted behind our back.
add_compile_options(-ffp-contract=off)
set(FUSEWISE_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Werror)
# GCC 12 forgets which code of a precompiled header is the standard library's, and finds fault with moves of short
# strings there (false alarms that it hides otherwise).
if(FUSEWISE_PRECOMPILE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND FUSEWISE_WARNINGS -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict)
endif()

set(FUSEWISE_SANITIZE "" CACHE STRING "Sanitizers to build with, e.g. address,undefined")
if(FUSEWISE_SANITIZE)
  add_compile_options(-fsanitize=${FUSEWISE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # Instrumented moves of optional values look uninitialized to GCC 12, and its own allocation functions like others.
  list(APPEND FUSEWISE_WARNINGS -Wno-maybe-uninitialized -Wno-mismatched-new-delete)
  add_link_options(-fsanitize=${FUSEWISE_SANITIZE})
endif()
option(FUSEWISE_COVERAGE "Instrument for gcov" OFF)
if(FUSEWISE_COVERAGE)
  add_compile_options(--coverage)
  add_link_options(--coverage)
endif()

# The scalar functions are made of fused multiply-adds; without the instruction each one is a library call.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  fusewise_file_options(src/numerics/functions.cpp -march=x86-64-v3)
endif()
