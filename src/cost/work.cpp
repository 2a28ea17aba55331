#include "cost/work.h"

#include <algorithm>

#include "cost/constants.h"

namespace fusewise::cost {

using graph::BodyNode;

double cycles_of(ScalarOp op) {
  switch (op) {
    case ScalarOp::exp:
      return exp_cycles;
    case ScalarOp::log:
      return log_cycles;
    case ScalarOp::erf:
      return erf_cycles;
    case ScalarOp::tanh:
      return tanh_cycles;
    case ScalarOp::sin:
    case ScalarOp::cos:
      return sine_cycles;
    case ScalarOp::tan:
      return tangent_cycles;
    case ScalarOp::atan:
      return atan_cycles;
    case ScalarOp::pow:
      return power_cycles;
    case ScalarOp::div:
      return divide_cycles;
    case ScalarOp::sqrt:
      return root_cycles;
    case ScalarOp::mod:
    case ScalarOp::remainder:
      return remainder_cycles;
    case ScalarOp::cast:
      return convert_cycles;
    case ScalarOp::max:
    case ScalarOp::min:
    case ScalarOp::sign:
      return 2 / alu_per_cycle;  // NaN and the sign of zero take a second instruction
    default:
      return 1 / alu_per_cycle;
  }
}

PointWork point_work(const graph::Form& form, const machine::Machine& machine) {
  PointWork work;
  const bool contracts = form.accumulation && form.accumulation->multiply_add;
  for (size_t i = 0; i < form.body.size(); ++i) {
    const BodyNode& b = form.body[i];
    if (b.kind == BodyNode::Kind::piece) work.cycles.vector += 1 / alu_per_cycle;
    if (b.kind != BodyNode::Kind::apply) continue;
    const int bits = std::max(bits_of(b.type), 8);
    const double width = b.type == DataType::boolean ? 1 : std::max(bits / 32.0, 0.25);
    if (contracts && i + 1 == form.body.size()) {
      work.cycles.multiply_add += width / machine.fma_units;
      work.flops += 2;
    } else if (b.op == ScalarOp::cast) {
      work.cycles.convert += convert_cycles * std::max(width, 1.0);
    } else {
      const double cycles = cycles_of(b.op) * width;
      (class_of(b.op) == ScalarClass::function || cycles > 2 ? work.cycles.function : work.cycles.vector) +=
          cycles;
      work.flops += 1;
    }
    work.operations += 1;
  }
  if (form.accumulation && !contracts) {
    const double width = std::max(bits_of(form.accumulation->accumulator) / 32.0, 0.25);
    work.cycles.vector += width / alu_per_cycle;
    work.flops += 1;
    work.operations += 1;
  }
  return work;
}

}  // namespace fusewise::cost
