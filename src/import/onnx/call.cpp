#include "import/onnx/call.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "import/onnx/importer.h"

namespace fusewise::onnx {

ItemPtr Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope; scope = scope->parent) {
    const auto found = scope->items.find(name);
    if (found != scope->items.end()) return found->second;
  }
  return nullptr;
}

Call::Call(Importer& importer, Scope& scope, const Node& node, int64_t version)
    : importer_(importer), scope_(scope), node_(node), version_(version), builder_(importer.builder()) {}

ItemPtr Call::item(size_t input) const {
  if (!has(input)) fail(fmt::format("operand {} is missing", input));
  ItemPtr found = scope_.find(node_.inputs[input]);
  if (!found) fail(fmt::format("it reads the tensor '{}', which nothing makes", node_.inputs[input]));
  return found;
}

TensorLoader& Call::loader() { return importer_.loader(); }
graph::Value Call::value(size_t input) { return importer_.materialize(*item(input)); }
graph::TensorType Call::type(size_t input) { return importer_.type_of(*item(input)); }
const KnownTensor* Call::known(size_t input) { return importer_.known_of(*item(input)); }

std::vector<Dim> Call::dims(size_t input) {
  if (const KnownTensor* tensor = known(input)) return tensor->values;
  return importer_.sizes().elements(value(input), RuntimeSizes::Sign::size, std::string(node_.inputs[input]));
}

std::vector<Dim> Call::positions(size_t input) {
  if (const KnownTensor* tensor = known(input)) return tensor->values;
  return importer_.sizes().elements(value(input), RuntimeSizes::Sign::position,
                                    std::string(node_.inputs[input]));
}

std::vector<int64_t> Call::integers(size_t input) {
  const KnownTensor* tensor = known(input);
  if (!tensor) {
    unsupported(fmt::format("operand '{}' must be known before the model runs, and it depends on data",
                            node_.inputs[input]));
  }
  const auto constants = tensor->constants();
  if (!constants)
    unsupported(
        fmt::format("operand '{}' must be constant, and it depends on the shapes", node_.inputs[input]));
  return *constants;
}

std::optional<graph::ConstantData> Call::constant(size_t input) {
  return importer_.folder().fold(value(input));
}

std::optional<std::vector<Scalar>> Call::elements(size_t input) {
  const std::optional<graph::ConstantData> data = constant(input);
  if (!data || !is_computable(data->type.element)) return std::nullopt;
  const size_t size = static_cast<size_t>(bytes_of(data->type.element));
  std::vector<Scalar> result;
  for (size_t i = 0; i + size <= data->bytes.size(); i += size)
    result.push_back(load_scalar(data->bytes.data() + i, data->type.element));
  return result;
}

const Attribute* Call::attribute(std::string_view name) const {
  for (const Attribute& a : node_.attributes) {
    if (a.name != name) continue;
    if (a.reference.empty()) return &a;
    if (!scope_.function_attributes)
      fail(fmt::format("attribute '{}' refers to a function's outside of one", name));
    const auto found = scope_.function_attributes->find(a.reference);
    return found == scope_.function_attributes->end() ? nullptr : found->second;
  }
  return nullptr;
}

namespace {

const Attribute* typed(const Call& call, std::string_view name, Attribute::Type type, const char* what) {
  const Attribute* a = call.attribute(name);
  if (a && a->type != type) call.fail(fmt::format("attribute '{}' is not {}", name, what));
  return a;
}

}  // namespace

int64_t Call::integer(std::string_view name, int64_t otherwise) const {
  const Attribute* a = typed(*this, name, Attribute::Type::int_, "an integer");
  return a ? a->i : otherwise;
}

int64_t Call::required_integer(std::string_view name) const {
  if (!attribute(name)) fail(fmt::format("attribute '{}' is missing", name));
  return integer(name, 0);
}

float Call::number(std::string_view name, float otherwise) const {
  const Attribute* a = typed(*this, name, Attribute::Type::float_, "a number");
  return a ? a->f : otherwise;
}

std::string_view Call::string(std::string_view name, std::string_view otherwise) const {
  const Attribute* a = typed(*this, name, Attribute::Type::string, "a string");
  return a ? a->s : otherwise;
}

std::optional<std::vector<int64_t>> Call::integer_list(std::string_view name) const {
  const Attribute* a = attribute(name);
  if (!a) return std::nullopt;
  if (a->type == Attribute::Type::int_) return std::vector<int64_t>{a->i};
  typed(*this, name, Attribute::Type::ints, "a list of integers");
  return a->ints;
}

int Call::axis(int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank) fail(fmt::format("axis {} is outside a tensor of rank {}", axis, rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::optional<std::vector<int>> Call::axes(int rank, size_t input, std::string_view name) {
  std::optional<std::vector<int64_t>> raw = integer_list(name);
  if (!raw && has(input)) raw = integers(input);
  if (!raw) return std::nullopt;
  std::vector<int> result;
  for (int64_t a : *raw) {
    result.push_back(axis(a, rank));
    if (std::ranges::count(result, result.back()) > 1) fail(fmt::format("axis {} is given twice", a));
  }
  return result;
}

void Call::set_item(size_t output, ItemPtr item) {
  if (!wants(output)) return;
  scope_.items[node_.outputs[output]] = std::move(item);
}

void Call::set_output(size_t output, graph::Value value) { set_item(output, importer_.item_of(value)); }

void Call::set_known(size_t output, KnownTensor known) {
  auto item = std::make_shared<Item>();
  item->known = std::move(known);
  set_item(output, std::move(item));
}

void Call::alias(size_t output, size_t input) { set_item(output, item(input)); }

void Call::fail(const std::string& message) const { throw UserError(message); }
void Call::unsupported(const std::string& message) const { throw UnsupportedError(message); }

}  // namespace fusewise::onnx
