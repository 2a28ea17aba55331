// Sizes and positions that only a run knows: elements of integer tensors that become symbols of the graph, bound by
// a node that reads them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "graph/builder.h"

namespace fusewise::onnx {

class RuntimeSizes {
 public:
  explicit RuntimeSizes(graph::GraphBuilder& builder) : builder_(builder) {}

  // A symbol of the graph that nothing else is called: the hint, or one like it.
  std::string fresh_symbol(const std::string& hint);

  // The elements of an integer value of constant size, as far as constants and dimensions lead to them through views.
  std::vector<std::optional<Dim>> followed(graph::Value value);

  enum class Sign : uint8_t {
    size,      // a negative one ends the run with an error
    position,  // may be negative; taken as +-2^62 beyond that
  };
  // The same with a symbol where nothing leads to an element; an element is read once, whoever asks. Floats are cut to
  // whole numbers.
  std::vector<Dim> elements(graph::Value value, Sign sign, const std::string& hint);

 private:
  // An element: known, or number `index` of a value that has to be read.
  struct Element {
    std::optional<Dim> dim;
    graph::Value leaf;
    int64_t index = 0;
  };
  std::vector<Element> trace(graph::Value value, int depth) const;
  std::vector<Dim> read(graph::Value picked, int64_t count, Sign sign, const std::string& hint);
  graph::Value pick(graph::Value leaf, const std::vector<int64_t>& indices);

  graph::GraphBuilder& builder_;
  std::set<std::string> used_;
  std::map<std::tuple<graph::Value, int64_t, Sign>, Dim> known_;
};

}  // namespace fusewise::onnx
