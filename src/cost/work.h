// The work of one point of a form's domain, by unit, in cycles per vector of float32 (wider types count more).
#pragma once

#include "cost/estimate.h"
#include "graph/form.h"

namespace fusewise::cost {

struct PointWork {
  UnitCycles cycles;      // per machine vector of points
  double flops = 0;       // per point
  double operations = 0;  // applied, multiply-adds as one
};

PointWork point_work(const graph::Form& form, const machine::Machine& machine);

// Cycles of one operation on a whole vector of float32.
double cycles_of(ScalarOp op);

}  // namespace fusewise::cost
