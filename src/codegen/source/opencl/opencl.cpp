// OpenCL C. The language has the helpers' basic functions, exact ones among them (fma, floor, fmod, ...) and correctly
// rounded division and square roots where the device offers the option.
#include <string>

#include "codegen/source/dialect.h"
#include "codegen/source/prelude.h"

namespace fusewise::codegen {

const Dialect& opencl_dialect() {
  static const std::string prelude = "#pragma OPENCL FP_CONTRACT OFF\n" + std::string(shared_prelude);
  static const std::string double_prelude =
      "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" + std::string(shared_double_prelude);
  static const Dialect dialect = {
      .name = "opencl",
      .suffix = ".cl",
      .kernel = "kernel",
      .global_memory = "global",
      .shared_memory = "local",
      .restrict_ = "restrict",
      .group = "(long)get_group_id(0)",
      .thread = "(long)get_local_id(0)",
      .group_size_before = "__attribute__((reqd_work_group_size({}, 1, 1)))",
      .barrier = "barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)",
      .prelude = prelude,
      .double_prelude = double_prelude,
  };
  return dialect;
}

}  // namespace fusewise::codegen
