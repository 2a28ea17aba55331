#include "session/inputs.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "base/error.h"
#include "session/input_files.h"

namespace fusewise::session {
namespace {

using Shapes = std::vector<std::optional<std::vector<int64_t>>>;

std::string names_of(std::span<const InputInfo> inputs) {
  std::string names;
  for (const InputInfo& input : inputs) names += fmt::format("{}{}", names.empty() ? "" : ", ", input.name);
  return names;
}

// The shapes that --shape gives; a later one wins.
Shapes requested_shapes(std::span<const InputInfo> inputs, const InputRequest& request) {
  Shapes shapes(inputs.size());
  for (const auto& [pattern, shape] : request.shapes) {
    bool used = false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!matches(pattern, inputs[i].name)) continue;
      used = true;
      shapes[i] = shape;
    }
    if (!used)
      throw UserError(fmt::format("the model has no input '{}' to give a shape", pattern),
                      {.hint = fmt::format("its inputs are {}", names_of(inputs))});
  }
  return shapes;
}

// The values of symbols, with who gave them.
class Symbols {
 public:
  SymbolValues values;

  void set(const std::string& name, int64_t value, const std::string& origin) {
    const auto [known, added] = values.emplace(name, value);
    if (added) {
      origins_[name] = origin;
    } else if (known->second != value) {
      throw UserError(fmt::format("the dimension '{}' is {} by {} and {} by {}", name, known->second,
                                  origins_[name], value, origin));
    }
  }

  void set_from(const InputInfo& input, const std::vector<int64_t>& shape, const std::string& origin) {
    if (shape.size() != input.shape.size())
      throw UserError(fmt::format("input '{}' gets the shape {} and the model needs rank {}: {}", input.name,
                                  graph::to_string(shape), input.shape.size(), to_string(input.shape)));
    for (size_t d = 0; d < shape.size(); ++d) {
      if (const auto name = input.shape[d].as_symbol()) set(*name, shape[d], origin);
      if (!input.shape[d].is_constant() || input.shape[d].is(shape[d])) continue;
      throw UserError(fmt::format("input '{}' gets the shape {} and dimension {} of the model's is {}: {}",
                                  input.name, graph::to_string(shape), d, input.shape[d].value(),
                                  to_string(input.shape)));
    }
  }

 private:
  std::map<std::string, std::string> origins_;
};

std::set<std::string> symbols_of(std::span<const InputInfo> inputs) {
  std::set<std::string> names;
  for (const InputInfo& input : inputs)
    for (const Dim& extent : input.shape) names.merge(extent.symbols());
  return names;
}

void set_given(Symbols& symbols, std::span<const InputInfo> inputs,
               const std::vector<std::optional<graph::Tensor>>& given) {
  for (size_t i = 0; i < inputs.size(); ++i)
    if (given[i])
      symbols.set_from(inputs[i], given[i]->shape, fmt::format("the file of '{}'", inputs[i].name));
}

void set_requested(Symbols& symbols, std::span<const InputInfo> inputs, const InputRequest& request,
                   const Shapes& shapes) {
  const std::set<std::string> known = symbols_of(inputs);
  for (const auto& [name, value] : request.dims) {
    if (!known.contains(name)) {
      std::string list;
      for (const std::string& symbol : known) list += fmt::format("{}{}", list.empty() ? "" : ", ", symbol);
      throw UserError(fmt::format("no input has a dimension '{}'", name),
                      {.hint = known.empty() ? "all its shapes are fixed" : "its dimensions are " + list});
    }
    symbols.set(name, value, "--dim");
  }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (shapes[i]) symbols.set_from(inputs[i], *shapes[i], fmt::format("the shape of '{}'", inputs[i].name));
}

std::optional<ValueRange> range_of(const InputRequest& request, const std::string& name) {
  std::optional<ValueRange> range;
  for (const auto& [pattern, given] : request.ranges)
    if (matches(pattern, name)) range = given;
  return range;
}

void check_ranges(std::span<const InputInfo> inputs, const InputRequest& request) {
  for (const auto& [pattern, range] : request.ranges) {
    const bool used = std::any_of(inputs.begin(), inputs.end(),
                                  [&](const InputInfo& input) { return matches(pattern, input.name); });
    if (!used)
      throw UserError(fmt::format("the model has no input '{}' to give a range of values", pattern),
                      {.hint = fmt::format("its inputs are {}", names_of(inputs))});
  }
}

std::vector<int64_t> evaluated(const Shape& shape, const SymbolValues& symbols) {
  std::vector<int64_t> result;
  for (const Dim& extent : shape) result.push_back(extent.evaluate(symbols));
  return result;
}

void close_symbols(Symbols& symbols, std::span<const InputInfo> inputs,
                   const std::function<void(const std::string&)>& warn) {
  std::string open;
  for (const std::string& name : symbols_of(inputs)) {
    if (symbols.values.contains(name)) continue;
    symbols.values[name] = 1;
    open += fmt::format("{}{}", open.empty() ? "" : ", ", name);
  }
  if (!open.empty())
    warn(fmt::format("dimensions that nothing gives are 1: {} (choose them with --dim NAME=N)", open));
}

}  // namespace

std::vector<InputInfo> inputs_of(const graph::Graph& graph) {
  const std::vector<std::optional<Dim>> extents = index_extents(graph);
  std::vector<InputInfo> inputs;
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const graph::TensorType& type = graph.type({graph.inputs[i].node, 0});
    inputs.push_back({graph.inputs[i].name, type.element, type.shape, extents[i]});
  }
  return inputs;
}

std::string file_name_of(const std::string& tensor_name) {
  std::string name = tensor_name;
  std::replace_if(name.begin(), name.end(), [](char c) { return c == '/' || c == ':'; }, '_');
  return name;
}

bool matches(const std::string& pattern, const std::string& name) {
  // A name may itself have brackets or other characters that patterns give a meaning.
  return pattern == name || ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

SymbolValues requested_symbols(std::span<const InputInfo> inputs, const InputRequest& request) {
  const Shapes shapes = requested_shapes(inputs, request);
  Symbols symbols;
  set_given(symbols, inputs, read_inputs(inputs, request, [](const std::string&) {}));
  set_requested(symbols, inputs, request, shapes);
  return symbols.values;
}

std::string open_choices(std::span<const InputInfo> inputs, const InputRequest& request,
                         std::span<const std::string> valued) {
  const SymbolValues known = requested_symbols(inputs, request);
  const auto given = read_inputs(inputs, request, [](const std::string&) {});
  std::string sizes, values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::string shape;
    bool open = false;
    for (const Dim& extent : inputs[i].shape) {
      const auto name = extent.as_symbol();
      const auto value = name ? known.find(*name) : known.end();
      open = open || (name && value == known.end());
      shape +=
          (shape.empty() ? "" : "x") + (value != known.end()   ? fmt::format("{}", value->second)
                                        : extent.is_constant() ? extent.to_string()
                                                               : fmt::format("<{}>", extent.to_string()));
    }
    const std::string& input = inputs[i].name;
    if (open) sizes += fmt::format("{}--shape {}={}", sizes.empty() ? "" : " ", input, shape);
    const bool is_drawn = !given[i] && is_integer(inputs[i].type) &&
                          std::none_of(request.ranges.begin(), request.ranges.end(),
                                       [&](const auto& r) { return matches(r.first, input); });
    if (is_drawn && std::ranges::find(valued, input) != valued.end())
      values += fmt::format("{}--val-range {}=LOW,HIGH", values.empty() ? "" : " ", input);
  }
  if (!sizes.empty()) sizes = fmt::format("sizes that nothing gives are 1; give those that fit: {}", sizes);
  if (!values.empty())
    values = fmt::format("values that no file gives are random; give some that fit: {}", values);
  return sizes + (sizes.empty() || values.empty() ? "" : "; ") + values;
}

PreparedInputs prepare_inputs(std::span<const InputInfo> inputs, const InputRequest& request,
                              const std::function<void(const std::string&)>& warn) {
  const Shapes shapes = requested_shapes(inputs, request);
  check_ranges(inputs, request);
  std::vector<std::optional<graph::Tensor>> given = read_inputs(inputs, request, warn);
  Symbols symbols;
  set_given(symbols, inputs, given);
  set_requested(symbols, inputs, request, shapes);
  close_symbols(symbols, inputs, warn);

  const bool some_given =
      std::any_of(given.begin(), given.end(), [](const auto& tensor) { return tensor.has_value(); });
  PreparedInputs prepared;
  prepared.symbols = symbols.values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (given[i]) {
      prepared.tensors.push_back(std::move(*given[i]));
      continue;
    }
    if (some_given && request.warn_of_random)
      warn(fmt::format("no file gives input '{}': its values are random", inputs[i].name));
    const std::vector<int64_t> shape = shapes[i] ? *shapes[i] : evaluated(inputs[i].shape, symbols.values);
    std::optional<int64_t> extent;
    // A dimension of the program that inputs do not determine tells nothing here.
    if (inputs[i].index_extent) {
      const std::set<std::string> names = inputs[i].index_extent->symbols();
      if (std::all_of(names.begin(), names.end(),
                      [&](const auto& name) { return symbols.values.contains(name); }))
        extent = inputs[i].index_extent->evaluate(symbols.values);
    }
    prepared.tensors.push_back(random_tensor(inputs[i].name, inputs[i].type, shape, request.seed,
                                             range_of(request, inputs[i].name), extent));
  }
  return prepared;
}

}  // namespace fusewise::session
