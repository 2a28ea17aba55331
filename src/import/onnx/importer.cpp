#include "import/onnx/importer.h"

#include <fmt/core.h>

#include <algorithm>
#include <new>
#include <set>
#include <stdexcept>

#include "graph/dead_nodes.h"
#include "graph/shape_rules.h"
#include "import/onnx/op_table.h"
#include "import/onnx/sort_nodes.h"

namespace fusewise::onnx {

namespace {

// Functions that call functions, and nested graphs: far above what models have, and shallow for the stack.
constexpr int max_depth = 256;

std::unordered_map<std::string_view, int64_t> opset_map(const std::vector<OpsetImport>& opsets) {
  std::unordered_map<std::string_view, int64_t> result;
  for (const OpsetImport& opset : opsets) result[normalized_domain(opset.domain)] = opset.version;
  return result;
}

int64_t version_of(const Scope& scope, std::string_view domain) {
  const auto found = scope.opsets.find(normalized_domain(domain));
  return found == scope.opsets.end() ? 1 : found->second;
}

// Counts one level for as long as it lives, also when an exception ends it.
class Deeper {
 public:
  explicit Deeper(int& depth) : depth_(depth) { ++depth_; }
  ~Deeper() { --depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  int& depth_;
};

std::string_view optional_name(std::string_view name) { return name.empty() ? "(unnamed)" : name; }

}  // namespace

std::string_view normalized_domain(std::string_view domain) { return domain == "ai.onnx" ? "" : domain; }

std::string full_op_type(const Node& node) {
  const std::string_view domain = normalized_domain(node.domain);
  return domain.empty() ? std::string(node.op_type) : fmt::format("{}.{}", domain, node.op_type);
}

std::string display_name(const Node& node) {
  if (!node.name.empty()) return std::string(node.name);
  const std::string_view output = node.outputs.empty() ? "" : node.outputs[0];
  return fmt::format("{} -> {}", node.op_type, optional_name(output));
}

Importer::Importer(const Model& model, const ImportOptions& options)
    : model_(model),
      options_(options),
      main_(graph_),
      loader_(model.path, model.owner, options.allow_missing_external_data),
      sizes_(main_) {
  frames_.push_back(std::make_unique<Frame>(graphs_made_++, main_, nullptr));
  frames_.back()->nodes = &model.graph.nodes;
}

Importer::Frame& Importer::push_body(const std::string& name) {
  if (frames_.size() > graph::deepest_body)
    throw UserError(fmt::format("loops and branches are nested deeper than {} levels", graph::deepest_body));
  auto body = std::make_unique<graph::BodyBuilder>(builder(), name);
  graph::GraphBuilder& inside = body->builder();
  frames_.push_back(std::make_unique<Frame>(graphs_made_++, inside, std::move(body)));
  return *frames_.back();
}

RuntimeSizes& Importer::sizes() {
  if (frames_.size() > 1)
    throw UnsupportedError("a size that only the run knows, inside of a loop or a branch");
  return sizes_;
}

namespace {

graph::ModelNode model_node(const Node& n) {
  return {std::string(n.name), full_op_type(n),
          n.outputs.empty() ? std::string() : std::string(n.outputs[0])};
}

}  // namespace

Importer::InBody::InBody(Importer& importer, const Graph& source) : importer_(importer) {
  Frame& frame = importer.push_body(std::string(source.name));
  frame.nodes = &source.nodes;
  for (const Node& n : source.nodes) frame.builder.graph().model_nodes.push_back(model_node(n));
}

Importer::InBody::InBody(Importer& importer, const Node& source) : importer_(importer) {
  Frame& frame = importer.push_body("step");
  frame.builder.graph().model_nodes.push_back(model_node(source));
  frame.builder.set_source(0);
}

ItemPtr Importer::item_of(graph::Value value) {
  auto item = std::make_shared<Item>();
  item->values.emplace(current().number, value);
  return item;
}

graph::Graph Importer::run() {
  const std::string file = model_.path.empty() ? "the model" : model_.path;
  try {
    graph_.name = std::string(model_.graph.name);
    for (const Node& n : model_.graph.nodes) graph_.model_nodes.push_back(model_node(n));
    Scope scope;
    scope.opsets = opset_map(model_.opsets);
    if (model_.graph.sparse_initializers > 0) {
      unsupported_order_.push_back("sparse initializers");
      unsupported_["sparse initializers"] = {"sparse initializers", model_.graph.sparse_initializers, ""};
    }
    for (const Tensor& tensor : model_.graph.initializers) {
      auto item = std::make_shared<Item>();
      item->tensor = &tensor;
      if (!scope.items.emplace(tensor.name, std::move(item)).second)
        throw UserError(fmt::format("there are two initializers named '{}'", tensor.name));
    }
    for (const ValueInfo& input : model_.graph.inputs) add_input(input, scope);
    std::vector<std::string_view> results;
    for (const ValueInfo& output : model_.graph.outputs) results.push_back(output.name);
    import_nodes(model_.graph.nodes, scope, results);
    throw_if_unsupported();
    for (std::string_view name : results) {
      const ItemPtr item = scope.find(name);
      if (!item) throw UserError(fmt::format("nothing makes the model's output '{}'", name));
      main_.output(materialize(*item), std::string(name));
    }
    throw_if_unsupported();
    return graph::without_dead_nodes(std::move(graph_));
  } catch (const UserError& e) {
    ErrorContext where = e.context;
    where.file = model_.path;
    throw UserError(fmt::format("{}: {}", file, e.what()), where);
  } catch (const UnsupportedError& e) {
    throw UnsupportedError(fmt::format("{}: {}", file, e.what()), e.items);
  }
}

void Importer::add_input(const ValueInfo& info, Scope& scope) {
  // Files of old versions list initializers as inputs, too; those have their value.
  const auto known = scope.items.find(info.name);
  if (known != scope.items.end()) {
    if (known->second->tensor) return;
    throw UserError(fmt::format("there are two inputs named '{}'", info.name));
  }
  ItemPtr item = std::make_shared<Item>();
  if (const auto bound = options_.bound_inputs.find(std::string(info.name));
      bound != options_.bound_inputs.end()) {
    const graph::ConstantData& data = bound->second;
    item = item_of(main_.constant(data.type, data.bytes, data.owner, data.name));
    scope.items.emplace(info.name, std::move(item));
    return;
  }
  const std::optional<DataType> element = data_type_of_number(info.element_type);
  std::string problem;
  if (info.kind != ValueInfo::Kind::tensor) {
    problem =
        info.kind == ValueInfo::Kind::none ? "an input without a type" : "an input that is no plain tensor";
  } else if (!element && is_later_element_type(info.element_type)) {
    problem = fmt::format("an input of element type {}", info.element_type);
  } else if (!element) {
    throw UserError(fmt::format("input '{}': element type {} is unknown", info.name, info.element_type));
  } else if (!info.shape) {
    problem = "an input whose number of dimensions is not stated";
  } else if (!is_computable(*element)) {
    problem = fmt::format("an input of type {}", name_of(*element));
  }
  if (!problem.empty()) {
    item->is_unsupported = true;
    if (unsupported_.emplace(problem, UnsupportedItem{problem, 0, std::string(info.name)}).second)
      unsupported_order_.push_back(problem);
    ++unsupported_[problem].count;
  } else {
    graph::TensorType type{*element, {}};
    for (size_t d = 0; d < info.shape->size(); ++d) {
      const DimInfo& dim = (*info.shape)[d];
      // A question mark is what some exporters write where they know nothing: two of them need not be equal.
      const bool is_named = !dim.symbol.empty() && dim.symbol != "?";
      const std::string name = is_named ? std::string(dim.symbol) : fmt::format("{}_dim{}", info.name, d);
      const auto value = options_.symbol_values.find(name);
      if (dim.value && *dim.value >= 0)
        type.shape.push_back(*dim.value);
      else if (value == options_.symbol_values.end())
        type.shape.push_back(Dim::symbol(name));
      else if (value->second >= 0)
        type.shape.push_back(value->second);
      else
        throw UserError(fmt::format("the dimension '{}' is to be {}", name, value->second));
    }
    item = item_of(main_.input(std::string(info.name), std::move(type)));
  }
  scope.items.emplace(info.name, std::move(item));
}

graph::Value Importer::constant(const Tensor& tensor) {
  graph::ConstantData data = loader_.load(tensor);
  return builder().constant(std::move(data.type), data.bytes, std::move(data.owner), std::move(data.name));
}

graph::Value Importer::known_value(const KnownTensor& known) {
  const std::optional<std::vector<int64_t>> constants = known.constants();
  if (constants) {
    const size_t size = static_cast<size_t>(bytes_of(known.type));
    std::vector<std::byte> bytes(constants->size() * size);
    for (size_t i = 0; i < constants->size(); ++i) {
      const Scalar element = convert(Scalar{DataType::int64, 0, (*constants)[i]}, known.type);
      store_scalar(bytes.data() + i * size, element);
    }
    return builder().constant(known.tensor_type(), std::move(bytes));
  }
  graph::GraphBuilder& b = builder();
  graph::Value value = known.rank() == 0 ? b.dim(known.values[0]) : b.dims(known.values);
  value = b.reshape(value, known.tensor_type().shape);
  return b.cast(value, known.type);
}

Importer::Frame* Importer::home_of(const Item& item) {
  for (size_t i = frames_.size(); i-- > 0;)
    if (item.values.contains(frames_[i]->number)) return frames_[i].get();
  return nullptr;
}

graph::Value Importer::materialize(Item& item) {
  if (item.is_unsupported) throw InternalError("a value that could not be imported is read");
  const auto here = item.values.find(current().number);
  if (here != item.values.end()) return here->second;
  const bool made_anew = item.tensor || (item.known && !is_float(item.known->type));
  const Frame* home = made_anew ? nullptr : home_of(item);
  if (!home) {
    const graph::Value value = item.tensor ? constant(*item.tensor) : known_value(item.known.value());
    return item.values.emplace(current().number, value).first->second;
  }
  // Through every body in between.
  graph::Value value = item.values.at(home->number);
  bool inside = false;
  for (const std::unique_ptr<Frame>& frame : frames_) {
    if (inside) {
      value = frame->body->capture(value);
      item.values[frame->number] = value;
    }
    inside = inside || frame.get() == home;
  }
  return value;
}

graph::TensorType Importer::type_of(Item& item) {
  if (const Frame* home = home_of(item)) return home->builder.type(item.values.at(home->number));
  if (item.known) return item.known->tensor_type();
  return builder().type(materialize(item));
}

const KnownTensor* Importer::known_of(Item& item) {
  if (item.known) return &*item.known;
  if (!home_of(item)) materialize(item);
  Frame& home = *home_of(item);
  const graph::Value value = item.values.at(home.number);
  const graph::TensorType& type = home.builder.type(value);
  if (const graph::ConstantData* data = graph::constant_of(home.builder.graph(), value)) {
    item.known = known_elements(*data);
  } else if (!is_float(type.element) && is_computable(type.element) && home.folder.is_constant(value) &&
             graph::static_count(type) <= KnownTensor::max_elements) {
    if (const auto folded = home.folder.fold(value)) item.known = known_elements(*folded);
  }
  return item.known ? &*item.known : nullptr;
}

void Importer::import_nodes(const std::vector<Node>& nodes, Scope& scope,
                            const std::vector<std::string_view>& results) {
  const bool are_model_nodes = &nodes == current().nodes;
  for (uint32_t i : sorted_nodes(nodes, scope, results)) {
    if (are_model_nodes) builder().set_source(i);
    import_node(nodes[i], scope);
  }
}

std::vector<ItemPtr> Importer::import_body(const Graph& body, Scope& outer,
                                           const std::vector<ItemPtr>& arguments) {
  if (depth_ >= max_depth) throw UserError(fmt::format("graphs are nested deeper than {} levels", max_depth));
  if (arguments.size() != body.inputs.size())
    throw UserError("a nested graph has another number of inputs than given");
  const Deeper deeper(depth_);
  Scope scope;
  scope.parent = &outer;
  scope.opsets = outer.opsets;
  scope.function_attributes = outer.function_attributes;
  for (const Tensor& tensor : body.initializers) {
    auto item = std::make_shared<Item>();
    item->tensor = &tensor;
    scope.items[tensor.name] = std::move(item);
  }
  for (size_t i = 0; i < arguments.size(); ++i) scope.items[body.inputs[i].name] = arguments[i];
  std::vector<std::string_view> results;
  for (const ValueInfo& output : body.outputs) results.push_back(output.name);
  import_nodes(body.nodes, scope, results);
  std::vector<ItemPtr> items;
  for (std::string_view name : results) {
    ItemPtr item = scope.find(name);
    if (!item) throw UserError(fmt::format("nothing makes the nested graph's output '{}'", name));
    items.push_back(std::move(item));
  }
  return items;
}

const Function* Importer::find_function(const Node& node) const {
  for (const Function& f : model_.functions) {
    if (f.name == node.op_type && normalized_domain(f.domain) == normalized_domain(node.domain) &&
        f.overload == node.overload)
      return &f;
  }
  return nullptr;
}

void Importer::call_function(const Function& function, const Node& node, Scope& scope) {
  if (depth_ >= max_depth) {
    throw UserError(fmt::format("function '{}' is called deeper than {} levels; does it call itself?",
                                function.name, max_depth));
  }
  const Deeper deeper(depth_);
  const Call call(*this, scope, node, 1);
  std::unordered_map<std::string_view, const Attribute*> attributes;
  for (const Attribute& a : function.attribute_defaults) attributes[a.name] = &a;
  for (const Attribute& a : node.attributes)
    if (const Attribute* resolved = call.attribute(a.name)) attributes[a.name] = resolved;
  Scope inner;
  inner.opsets = opset_map(function.opsets);
  for (const auto& [domain, version] : scope.opsets) inner.opsets.emplace(domain, version);
  inner.function_attributes = &attributes;
  if (node.inputs.size() > function.inputs.size())
    throw UserError("more operands than the function has inputs");
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i].empty()) continue;
    ItemPtr item = scope.find(node.inputs[i]);
    if (!item) throw UserError(fmt::format("it reads the tensor '{}', which nothing makes", node.inputs[i]));
    inner.items[function.inputs[i]] = std::move(item);
  }
  // An operand that the caller leaves out has no item: whatever reads it must allow that.
  std::vector<Node> body = function.nodes;
  const std::set<std::string_view> left_out = [&] {
    std::set<std::string_view> names;
    for (std::string_view name : function.inputs)
      if (!inner.items.contains(name)) names.insert(name);
    return names;
  }();
  for (Node& n : body)
    for (std::string_view& name : n.inputs)
      if (left_out.contains(name)) name = {};
  import_nodes(body, inner, function.outputs);
  for (size_t i = 0; i < node.outputs.size() && i < function.outputs.size(); ++i) {
    const ItemPtr item = inner.find(function.outputs[i]);
    if (!item) throw UserError(fmt::format("nothing makes the function's output '{}'", function.outputs[i]));
    if (!node.outputs[i].empty()) scope.items[node.outputs[i]] = item;
  }
}

void Importer::note_unsupported(const Node& node, const std::string& what) {
  const auto [entry, is_new] = unsupported_.emplace(what, UnsupportedItem{what, 0, display_name(node)});
  if (is_new) unsupported_order_.push_back(what);
  ++entry->second.count;
}

void Importer::set_unsupported(const Node& node, Scope& scope) {
  for (std::string_view output : node.outputs) {
    auto item = std::make_shared<Item>();
    item->is_unsupported = true;
    if (!output.empty()) scope.items[output] = std::move(item);
  }
}

void Importer::throw_if_unsupported() const {
  if (unsupported_.empty()) return;
  std::vector<UnsupportedItem> items;
  std::string list;
  for (const std::string& key : unsupported_order_) {
    items.push_back(unsupported_.at(key));
    const UnsupportedItem& item = items.back();
    list += fmt::format("\n  {} ({} time{}", item.what, item.count, item.count == 1 ? "" : "s");
    list += item.first_node.empty() ? ")" : fmt::format(", first in '{}')", item.first_node);
  }
  throw UnsupportedError("not supported yet:" + list, std::move(items));
}

UserError Importer::in_context(const UserError& error, const Node& node) const {
  ErrorContext where = error.context;
  if (!where.node.empty()) return error;  // an inner node has put itself in already
  where.node = display_name(node);
  where.op = full_op_type(node);
  return UserError(fmt::format("node '{}' ({}): {}", where.node, where.op, error.what()), where);
}

void Importer::import_node(const Node& node, Scope& scope) {
  bool reads_unsupported = false;
  for (std::string_view name : node.inputs) {
    const ItemPtr item = name.empty() ? nullptr : scope.find(name);
    if (item && item->is_unsupported) reads_unsupported = true;
  }
  std::string type;
  try {
    const Function* function = find_function(node);
    const std::string_view domain = normalized_domain(node.domain);
    const int64_t version = version_of(scope, domain);
    if (!function && !find_op(domain, node.op_type, version)) {
      note_unsupported(node, fmt::format("operator {}, opset version {}", full_op_type(node), version));
      return set_unsupported(node, scope);
    }
    if (reads_unsupported) return set_unsupported(node, scope);
    for (std::string_view name : node.inputs) {
      if (const ItemPtr item = name.empty() ? nullptr : scope.find(name); item && type.empty())
        type = std::string(name_of(type_of(*item).element));
    }
    if (function)
      call_function(*function, node, scope);
    else
      dispatch(node, scope);
  } catch (const UserError& e) {
    throw in_context(e, node);
  } catch (const UnsupportedError& e) {
    note_unsupported(node,
                     fmt::format("operator {}, opset version {}{}{}: {}", full_op_type(node),
                                 version_of(scope, node.domain), type.empty() ? "" : ", ", type, e.what()));
    set_unsupported(node, scope);
  } catch (const std::bad_alloc&) {
    throw in_context(UserError("importing it needs more memory than there is"), node);
  } catch (const std::length_error&) {
    throw in_context(UserError("importing it needs more memory than there is"), node);
  }
}

void Importer::dispatch(const Node& node, Scope& scope) {
  const std::string_view domain = normalized_domain(node.domain);
  const int64_t version = version_of(scope, domain);
  Call call(*this, scope, node, version);
  std::optional<std::vector<KnownTensor>> known = known_results(call);
  // Integers and booleans become nodes only where they are used as data. What is known of floats is a hint
  // for those who ask for shapes, and their nodes are made all the same.
  if (known && !is_float((*known)[0].type)) {
    for (size_t i = 0; i < known->size(); ++i) call.set_known(i, std::move((*known)[i]));
    return;
  }
  find_op(domain, node.op_type, version)->import(call);
  if (known && call.wants(0)) {
    const ItemPtr item = scope.find(node.outputs[0]);
    if (item && !item->known) item->known = std::move((*known)[0]);
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i].empty() && !scope.items.contains(node.outputs[i]))
      call.unsupported(fmt::format("its output number {}", i));
  }
}

}  // namespace fusewise::onnx
