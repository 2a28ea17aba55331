// Control flow that import can take away.
#include <fmt/core.h>

#include "base/error.h"
#include "import/onnx/compose.h"
#include "import/onnx/importer.h"
#include "import/onnx/op_table.h"

namespace fusewise::onnx {

namespace {

const Graph& body_of(Call& c, std::string_view name) {
  const Attribute* a = c.attribute(name);
  if (!a || a->graphs.size() != 1) c.fail(fmt::format("attribute '{}' holds no graph", name));
  return *a->graphs[0];
}

// A condition that is known takes its branch. Otherwise both branches are computed and their results chosen
// from: every operation is a pure function, so that only results of equal shape are needed.
void if_then_else(Call& c) {
  const Graph& then_body = body_of(c, "then_branch");
  const Graph& else_body = body_of(c, "else_branch");
  if (then_body.outputs.size() != c.outputs() || else_body.outputs.size() != c.outputs())
    c.fail("a branch has another number of results than the node");
  const KnownTensor* known = c.known(0);
  if (known && known->values.size() == 1 && known->values[0].is_constant()) {
    const Graph& taken = known->values[0].is(0) ? else_body : then_body;
    const std::vector<ItemPtr> results = c.importer().import_body(taken, c.scope(), {});
    for (size_t i = 0; i < results.size(); ++i) c.set_item(i, results[i]);
    return;
  }
  const std::vector<ItemPtr> yes = c.importer().import_body(then_body, c.scope(), {});
  const std::vector<ItemPtr> no = c.importer().import_body(else_body, c.scope(), {});
  const graph::Value condition = c.builder().reshape(c.value(0), {});
  for (size_t i = 0; i < yes.size(); ++i) {
    if (yes[i]->is_unsupported || no[i]->is_unsupported) {
      c.set_item(i, yes[i]->is_unsupported ? yes[i] : no[i]);
      continue;
    }
    const graph::TensorType then_type = c.importer().type_of(*yes[i]),
                            else_type = c.importer().type_of(*no[i]);
    if (then_type.element != else_type.element) c.fail("its branches give results of different types");
    if (then_type.shape != else_type.shape) {
      c.unsupported(fmt::format("branches with results of shapes {} and {}", to_string(then_type.shape),
                                to_string(else_type.shape)));
    }
    c.set_output(i,
                 Compose(c.builder())
                     .select(condition, c.importer().materialize(*yes[i]), c.importer().materialize(*no[i])));
  }
}

constexpr OpRow rows[] = {
    {"If", 1, newest, if_then_else},
};

}  // namespace

std::span<const OpRow> control_ops() { return rows; }

}  // namespace fusewise::onnx
