// A rule of simplify_algebra: one row with its name, the operation of the node that it looks at, and a
// function that returns the value that stands for the node, or nothing. Every rule is exact: the same bits,
// NaN payloads aside. Its comment is the algebra.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "graph/graph.h"
#include "rewrite/rebuilder.h"

namespace fusewise::rewrite {

struct AlgebraRule {
  std::string_view name;
  graph::Op op;
  std::optional<ScalarOp> map_op;  // for maps with one operation only
  std::optional<graph::Value> (*apply)(Rebuilder& rebuilder, const graph::Node& node);
};

// The families, each in the order in which its rules are tried.
std::span<const AlgebraRule> arithmetic_rules();
std::span<const AlgebraRule> cast_rules();
std::span<const AlgebraRule> logic_rules();
std::span<const AlgebraRule> view_rules();

}  // namespace fusewise::rewrite
