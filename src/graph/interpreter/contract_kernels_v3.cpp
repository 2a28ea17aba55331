#if defined(__x86_64__)

#include "graph/interpreter/contract_kernels_v3.h"

#include "graph/interpreter/contract_kernels_body.h"

namespace fusewise::graph {

const ContractKernels<float>& contract_kernels_v3(float) { return table<float>(); }
const ContractKernels<double>& contract_kernels_v3(double) { return table<double>(); }
const ContractKernels<uint32_t>& contract_kernels_v3(uint32_t) { return table<uint32_t>(); }
const ContractKernels<uint64_t>& contract_kernels_v3(uint64_t) { return table<uint64_t>(); }

}  // namespace fusewise::graph

#endif
