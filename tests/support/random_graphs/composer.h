// Composes a random graph step by step (random_graph.h). Operations that do not fit their operands are not appended;
// symbols whose values contradict what a node requires make the whole attempt unfit.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/builder.h"
#include "support/random.h"
#include "support/random_graphs/random_graph.h"
#include "support/random_graphs/random_values.h"

namespace fusewise::test {

class Composer {
 public:
  using Value = graph::Value;
  using Sizes = std::vector<int64_t>;
  struct Unfit {};

  Composer(uint64_t seed, const GraphOptions& options)
      : options_(options), random_(seed), builder_(case_.graph) {}
  Composer(const Composer&) = delete;
  Composer& operator=(const Composer&) = delete;

  // Throws Unfit.
  GraphCase compose();

 private:
  using Maker = std::optional<Value> (Composer::*)();

  GraphOptions options_;
  Random random_;
  GraphCase case_;
  graph::GraphBuilder builder_;
  std::vector<Value> pool_;
  std::set<std::string> late_;  // symbols that nodes bind
  // Of the composer of a body:
  Composer* outer_ = nullptr;
  std::map<Value, Value> inside_;  // what stands for a value of the graph around it
  std::vector<Value> captures_;    // of the graph around it

  // composer.cpp
  bool try_operation();
  bool try_maker(Maker maker);
  void next_source();
  void check_node(graph::NodeId node) const;
  void check_symbols() const;
  void add_outputs();
  void add_odd_outputs();

  // composer_values.cpp: sizes, inputs and operands
  const Shape& shape(Value v) const { return case_.graph.type(v).shape; }
  DataType type(Value v) const { return case_.graph.type(v).element; }
  int rank(Value v) const { return case_.graph.type(v).rank(); }
  int64_t size_of(const Dim& d) const { return d.evaluate(case_.symbols); }
  Sizes sizes(Value v) const;
  static int64_t count(const Sizes& s);
  int64_t random_size();
  Sizes random_sizes();
  DataType random_type();
  DataType random_float_type();
  Dim dim_of(int64_t size);
  Dim known_dim(int64_t size);
  Dim new_symbol(int64_t size);
  Value add_input(DataType element, Shape dims, int64_t index_extent = 0, int constant_percent = 10);
  Value new_input(DataType element, const Sizes& concrete);
  Value weights(DataType element, Shape dims) { return add_input(element, std::move(dims), 0, 60); }
  Value scalar(DataType element);
  Value pick();
  std::optional<Value> pick_where(const std::function<bool(Value)>& fits);
  Shape broadcastable(const Shape& full);
  Value partner(Value x);
  Value maybe_mapped(Value v);

  // composer_maps.cpp
  std::optional<Value> unary();
  std::optional<Value> binary();
  std::optional<Value> select();
  std::optional<Value> cast();
  std::optional<Value> reduce();
  std::optional<Value> iota();
  std::optional<Value> dims();

  // composer_views.cpp
  std::optional<Value> broadcast();
  std::optional<Value> reshape();
  void change_shape(Shape& to);
  std::optional<Value> transpose();
  std::optional<Value> slice();
  std::optional<Value> pad();
  std::optional<Value> pad_from_inside();
  std::optional<Value> concat();
  std::optional<Value> split();
  std::optional<Value> gather();

  // composer_contractions.cpp
  std::optional<Value> dot();
  std::optional<Value> convolution();
  std::optional<Value> transposed_convolution();
  std::optional<Value> window();
  Value image(int spatial);
  std::optional<Value> convolve(Value x, int64_t groups, int64_t channels, int64_t taps, bool strided);

  // composer_blocks.cpp: what models are made of
  std::optional<Value> softmax();
  std::optional<Value> norm();
  std::optional<Value> layers();
  std::optional<Value> attention();
  std::optional<Value> convolution_block();
  std::optional<Value> repeated();
  std::optional<Value> same_again();
  Value softmax_of(Value x, int axis);
  Value norm_of(Value x, std::vector<int> axes, bool centred);
  Value activation_of(Value x);
  void add_promises();

  // composer_alone.cpp: what is never computed together with others
  std::optional<Value> prefix();
  std::optional<Value> scatter();
  std::optional<Value> top_k();
  std::optional<Value> non_zero();
  std::optional<Value> unique();
  std::optional<Value> non_max_suppression();
  std::optional<Value> read_size();
  std::vector<Value> call_host(hostops::Function function, std::vector<Value> operands,
                               std::vector<Dim> parameters, size_t sizes);
  bool is_certain(Value v) const;

  // composer_control.cpp
  std::optional<Value> loop();
  std::optional<Value> branch();
  std::unique_ptr<Composer> begin_body();
  void grow_body(Composer& body);
  Value capture(Value outer);
  Value result_of_type(const graph::TensorType& type, std::optional<Value> otherwise);
  graph::Body finish_body(const std::vector<Value>& outputs, const std::vector<Value>& captures);
  Value condition();
  Value certain(const std::function<bool(Value)>& fits);
};

}  // namespace fusewise::test
