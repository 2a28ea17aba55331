# The contraction loops of the interpreter are built a second time for CPUs with AVX2 and fused multiply-add, and
# chosen at run time. They hold no inline function of another header, so no such code leaks into other files.
set(contract_kernels "${CMAKE_SOURCE_DIR}/src/graph/interpreter/contract_kernels")
set_source_files_properties("${contract_kernels}_baseline.cpp" PROPERTIES COMPILE_OPTIONS "-O3")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set_source_files_properties("${contract_kernels}_v3.cpp" PROPERTIES COMPILE_OPTIONS "-O3;-march=x86-64-v3")
endif()
