// Blocks that several tests compose.
#pragma once

#include "graph/builder.h"

namespace fusewise::test {

// Over the last axis.
inline graph::Value softmax(graph::GraphBuilder& b, graph::Value x) {
  const int last = b.type(x).rank() - 1;
  const graph::Value e =
      b.map(ScalarOp::exp, {b.map_broadcast(ScalarOp::sub, {x, b.reduce(x, Combine::max, {last}, true)})});
  return b.map_broadcast(ScalarOp::div, {e, b.reduce(e, Combine::sum, {last}, true)});
}

}  // namespace fusewise::test
