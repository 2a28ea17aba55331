#include "graph/interpreter/evaluate.h"

#include <fmt/format.h>

#include "base/error.h"

namespace fusewise::graph {

std::vector<int64_t> evaluate_shape(const Shape& shape, const SymbolValues& symbols) {
  std::vector<int64_t> result;
  result.reserve(shape.size());
  for (const Dim& dim : shape) result.push_back(dim.evaluate(symbols));
  return result;
}

std::string describe(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  std::string text = fmt::format("node {} ({}", id, name_of(node.op));
  if (!node.sources.empty() && node.sources[0] < graph.model_nodes.size()) {
    const ModelNode& source = graph.model_nodes[node.sources[0]];
    const std::string& name = source.name.empty() ? source.first_output : source.name;
    text += fmt::format(", from {} '{}'", source.op_type, name);
  }
  return text + ")";
}

void run_in_pieces(ThreadPool* pool, int64_t count, int64_t grain, FunctionRef<void(int64_t, int64_t)> body) {
  if (count <= 0) return;
  if (!pool || pool->size() == 1 || count <= grain) return body(0, count);
  pool->parallel_for(count, [&](int64_t begin, int64_t end, int) { body(begin, end); }, grain);
}

namespace {

Tensor evaluate_constant(const ConstantData& constant) {
  return Tensor::borrow(constant.type.element, evaluate_shape(constant.type.shape, {}), constant.bytes,
                        constant.owner)
      .aligned();
}

Tensor evaluate_dims(const Evaluation& evaluation) {
  Tensor result(DataType::int64, evaluation.shape);
  const std::vector<int64_t> values =
      evaluate_shape(attributes<DimsAttributes>(evaluation.node).dims, evaluation.symbols);
  check(static_cast<int64_t>(values.size()) == result.count(),
        "dims has another number of values than elements");
  std::copy(values.begin(), values.end(), result.mutable_as<int64_t>().begin());
  return result;
}

Tensor dispatch(const Graph& graph, const Evaluation& evaluation) {
  const Node& node = evaluation.node;
  switch (node.op) {
    case Op::branch:
    case Op::host:
    case Op::input:
    case Op::loop:
      break;
    case Op::result:
      return evaluation.operands[0];
    case Op::constant:
      return evaluate_constant(graph.constants.at(attributes<ConstantAttributes>(node).constant));
    case Op::dims:
      return evaluate_dims(evaluation);
    case Op::iota:
      return evaluate_iota(evaluation);
    case Op::map:
      return evaluate_map(evaluation);
    case Op::reduce:
      return evaluate_reduce(evaluation);
    case Op::window_reduce:
      return evaluate_window_reduce(evaluation);
    case Op::dot:
      return evaluate_dot(evaluation);
    case Op::convolution:
      return evaluate_convolution(evaluation);
    case Op::prefix:
    case Op::scatter:
      return evaluate_sweep(evaluation);
    case Op::gather:
      return evaluate_gather(evaluation);
    case Op::broadcast:
    case Op::concat:
    case Op::pad:
    case Op::reshape:
    case Op::slice:
    case Op::transpose:
      return evaluate_view(evaluation);
  }
  throw InternalError("an operation that is evaluated elsewhere");
}

class HostResults final : public hostops::Receiver {
 public:
  HostResults(const Node& node, SymbolValues& symbols)
      : node_(node), symbols_(symbols), tensors(node.results.size()) {}

  void bind(std::span<const int64_t> sizes) override {
    const std::span<const std::string> names = bound_symbols(node_);
    check(sizes.size() == names.size(), "a host function binds another number of symbols");
    for (size_t i = 0; i < sizes.size(); ++i) symbols_[names[i]] = sizes[i];
    for (size_t i = 0; i < tensors.size(); ++i)
      tensors[i] = Tensor(node_.results[i].element, evaluate_shape(node_.results[i].shape, symbols_));
  }
  std::byte* result(size_t index) override { return tensors.at(index).mutable_bytes().data(); }

 private:
  const Node& node_;
  SymbolValues& symbols_;

 public:
  std::vector<Tensor> tensors;
};

std::vector<Tensor> call_host_function(const Node& node, std::span<const Tensor> operands,
                                       SymbolValues& symbols) {
  const auto& a = attributes<HostAttributes>(node);
  std::vector<hostops::Operand> given;
  for (const Tensor& x : operands) given.push_back({x.element, x.shape, x.bytes().data()});
  HostResults results(node, symbols);
  hostops::Scratch scratch;
  hostops::call(a.function, given, evaluate_shape(a.parameters, symbols), results, scratch);
  return std::move(results.tensors);
}

// Errors of `body` name the node.
template <class Body>
auto in_context(const Graph& graph, NodeId id, const Body& body) {
  try {
    return body();
  } catch (const UserError& error) {
    ErrorContext where = error.context;
    where.node = describe(graph, id);
    throw UserError(fmt::format("{}: {}", where.node, error.what()), where);
  } catch (const InternalError& error) {
    throw InternalError(fmt::format("{}: {}", describe(graph, id), error.what()));
  }
}

}  // namespace

Tensor evaluate_node(const Graph& graph, NodeId id, std::span<const Tensor> operands,
                     const SymbolValues& symbols, ThreadPool* pool) {
  const Node& node = graph.node(id);
  check(node.results.size() == 1, "the interpreter knows nodes with one result only");
  const TensorType& type = node.results[0];
  if (node.op != Op::constant && !is_computable(type.element)) {
    throw UnsupportedError(
        fmt::format("not supported yet: {} computes in {}", describe(graph, id), name_of(type.element)));
  }
  return in_context(graph, id, [&] {
    Tensor result = dispatch(
        graph, Evaluation{node, evaluate_shape(type.shape, symbols), type.element, operands, symbols, pool});
    if (result.element != type.element || result.shape != evaluate_shape(type.shape, symbols)) {
      throw InternalError(fmt::format("its result is {}{} and should be {}", name_of(result.element),
                                      to_string(result.shape), to_string(type)));
    }
    return result;
  });
}

std::vector<Tensor> evaluate_opaque(const Graph& graph, NodeId id, std::span<const Tensor> operands,
                                    SymbolValues& symbols) {
  return in_context(graph, id, [&] { return call_host_function(graph.node(id), operands, symbols); });
}

}  // namespace fusewise::graph
