#include <fmt/core.h>

#include <map>
#include <optional>

#include "base/error.h"
#include "runtime/binding.h"

namespace fusewise::runtime {
namespace {

struct Found {
  int64_t value;
  std::string where;
};

std::string place(const program::Input& input, size_t axis) {
  return fmt::format("dimension {} of input '{}'", axis, input.name);
}

class Solver {
 public:
  explicit Solver(const program::Program& program) : program_(program) {}

  SymbolValues run(std::span<const std::vector<int64_t>> shapes) {
    check_ranks(shapes);
    // Dimensions that are just a symbol come first; the others may then have one unknown left.
    for (size_t i = 0; i < shapes.size(); ++i)
      for (size_t axis = 0; axis < shapes[i].size(); ++axis) plain(i, axis, shapes[i][axis]);
    while (solve_more(shapes)) {
    }
    SymbolValues values;
    for (const auto& [name, found] : found_) values.emplace(name, found.value);
    for (const std::string& symbol : program_.symbols)
      if (!values.contains(symbol))
        throw UnsupportedError(fmt::format(
            "not supported yet: the symbol '{}' does not follow from the shapes of the inputs", symbol));
    for (size_t i = 0; i < shapes.size(); ++i)
      for (size_t axis = 0; axis < shapes[i].size(); ++axis) compare(i, axis, shapes[i][axis], values);
    return values;
  }

 private:
  const Dim& dim(size_t input, size_t axis) const { return program_.inputs[input].shape[axis]; }

  void check_ranks(std::span<const std::vector<int64_t>> shapes) const {
    if (shapes.size() != program_.inputs.size())
      throw UserError(
          fmt::format("the program has {} inputs, and {} are given", program_.inputs.size(), shapes.size()));
    for (size_t i = 0; i < shapes.size(); ++i) {
      const program::Input& input = program_.inputs[i];
      if (shapes[i].size() != input.shape.size())
        throw UserError(fmt::format("input '{}' needs {} dimensions, {}, and the one given has {}",
                                    input.name, input.shape.size(), to_string(input.shape),
                                    shapes[i].size()));
      for (size_t axis = 0; axis < shapes[i].size(); ++axis)
        if (shapes[i][axis] < 0)
          throw UserError(fmt::format("{} is negative: {}", place(input, axis), shapes[i][axis]));
    }
  }

  void plain(size_t input, size_t axis, int64_t value) {
    const std::optional<std::string> symbol = dim(input, axis).as_symbol();
    if (!symbol) return;
    const std::string where = place(program_.inputs[input], axis);
    const auto [entry, is_new] = found_.emplace(*symbol, Found{value, where});
    if (!is_new && entry->second.value != value)
      throw UserError(fmt::format("{} is {}, but {} is {}, and both are '{}'", where, value,
                                  entry->second.where, entry->second.value, *symbol));
  }

  // One dimension with a single unknown symbol that occurs linearly: `coefficient * symbol + constant`.
  bool solve_more(std::span<const std::vector<int64_t>> shapes) {
    for (size_t i = 0; i < shapes.size(); ++i) {
      for (size_t axis = 0; axis < shapes[i].size(); ++axis) {
        const Dim rest = dim(i, axis).substitute(known());
        if (rest.terms().size() != 1 || rest.terms()[0].factors.size() != 1) continue;
        const Dim::Atom& atom = *rest.terms()[0].factors[0];
        if (atom.kind != Dim::Atom::Kind::symbol) continue;
        const int64_t coefficient = rest.terms()[0].coefficient;
        int64_t scaled = 0;
        if (__builtin_sub_overflow(shapes[i][axis], rest.constant_part(), &scaled) ||
            scaled % coefficient != 0 || scaled / coefficient < 0)
          throw UserError(fmt::format("{} is {}, which {} cannot be", place(program_.inputs[i], axis),
                                      shapes[i][axis], dim(i, axis).to_string()));
        found_.emplace(atom.name, Found{scaled / coefficient, place(program_.inputs[i], axis)});
        return true;
      }
    }
    return false;
  }

  std::map<std::string, Dim> known() const {
    std::map<std::string, Dim> values;
    for (const auto& [name, found] : found_) values.emplace(name, Dim(found.value));
    return values;
  }

  void compare(size_t input, size_t axis, int64_t value, const SymbolValues& values) const {
    const Dim& expected = dim(input, axis);
    const int64_t wanted = expected.evaluate(values);
    if (wanted == value) return;
    const std::string reason = expected.is_constant() ? "" : fmt::format(" ({})", expected.to_string());
    throw UserError(fmt::format("{} must be {}{}, and the one given has {}",
                                place(program_.inputs[input], axis), wanted, reason, value));
  }

  const program::Program& program_;
  std::map<std::string, Found> found_;
};

bool holds(int64_t left, program::Guard::Relation relation, int64_t right) {
  switch (relation) {
    case program::Guard::Relation::equal:
      return left == right;
    case program::Guard::Relation::not_equal:
      return left != right;
    case program::Guard::Relation::at_least:
      return left >= right;
    case program::Guard::Relation::at_most:
      return left <= right;
    case program::Guard::Relation::multiple_of:
      return right == 0 ? left == 0 : right == -1 || left % right == 0;
  }
  return false;
}

}  // namespace

SymbolValues solve_symbols(const program::Program& program,
                           std::span<const std::vector<int64_t>> input_shapes) {
  return Solver(program).run(input_shapes);
}

void check_guards(const program::Program& program, const Segments& segments, uint32_t segment,
                  const SymbolValues& symbols) {
  for (size_t i = 0; i < program.guards.size(); ++i) {
    if (segments.of_guard[i] != segment) continue;
    const program::Guard& guard = program.guards[i];
    const int64_t left = guard.left.evaluate(symbols);
    const int64_t right = guard.right.evaluate(symbols);
    if (!holds(left, guard.relation, right))
      throw UserError(fmt::format("{} ({} is {}, and {} is {})", guard.words, guard.left.to_string(), left,
                                  guard.right.to_string(), right));
  }
}

}  // namespace fusewise::runtime
