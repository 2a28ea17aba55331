# The contraction loops of the interpreter are built a second time for CPUs with AVX2 and fused multiply-add, and
# chosen at run time. They hold no inline function of another header, so no such code leaks into other files.
set(contract_kernels src/graph/interpreter/contract_kernels)
fusewise_file_options(${contract_kernels}_baseline.cpp -O3)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  fusewise_file_options(${contract_kernels}_v3.cpp -O3 -march=x86-64-v3)
endif()
