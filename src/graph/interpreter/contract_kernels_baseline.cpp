#include "graph/interpreter/contract_kernels_body.h"
#include "graph/interpreter/contract_kernels_v3.h"

namespace fusewise::graph {

namespace {

template <class T>
const ContractKernels<T>& fastest() {
#if defined(__x86_64__)
  // Without the hardware instruction the C library's fma is slow but rounds the same.
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return contract_kernels_v3(T{});
#endif
  return table<T>();
}

}  // namespace

template <>
const ContractKernels<float>& contract_kernels<float>() {
  return fastest<float>();
}
template <>
const ContractKernels<double>& contract_kernels<double>() {
  return fastest<double>();
}
template <>
const ContractKernels<uint32_t>& contract_kernels<uint32_t>() {
  return fastest<uint32_t>();
}
template <>
const ContractKernels<uint64_t>& contract_kernels<uint64_t>() {
  return fastest<uint64_t>();
}

}  // namespace fusewise::graph
