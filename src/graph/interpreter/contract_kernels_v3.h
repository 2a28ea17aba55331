// The contraction loops built for x86-64-v3; contract_kernels_baseline.cpp chooses.
#pragma once

#include "graph/interpreter/contract_kernels.h"

namespace fusewise::graph {

const ContractKernels<float>& contract_kernels_v3(float);
const ContractKernels<double>& contract_kernels_v3(double);
const ContractKernels<uint32_t>& contract_kernels_v3(uint32_t);
const ContractKernels<uint64_t>& contract_kernels_v3(uint64_t);

}  // namespace fusewise::graph
