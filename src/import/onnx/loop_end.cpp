#include "import/onnx/loop_end.h"

#include <fmt/core.h>

#include "graph/symbolic_number.h"

namespace fusewise::onnx {

namespace {

using graph::SymbolicGivens;
using graph::Value;

// Names that no model has.
Dim unknown(const char* what, size_t number = 0) { return Dim::symbol(fmt::format("<{} {}>", what, number)); }

// A carried number that grows by a constant in every iteration.
struct Progression {
  Value before;
  Dim first;
  int64_t step;
};

std::vector<Progression> progressions(const LoopEnd& loop, const std::map<std::string, Dim>& symbols) {
  SymbolicGivens givens;
  givens.symbols = symbols;
  for (size_t s = 0; s < loop.before.size(); ++s) givens.values.emplace(loop.before[s], unknown("state", s));
  std::vector<Progression> found;
  for (size_t s = 0; s < loop.before.size(); ++s) {
    const std::optional<Dim> first = symbolic_number(loop.outside, loop.initial[s], {{}, symbols});
    if (!first) continue;
    const std::optional<Dim> next = symbolic_number(loop.body, loop.after[s], givens);
    if (!next) continue;
    const Dim step = *next - unknown("state", s);
    if (step.is_constant()) found.push_back({loop.before[s], *first, step.value()});
  }
  return found;
}

bool holds(const std::optional<Dim>& truth) { return truth && truth->is(1); }

}  // namespace

bool condition_is_idle(const LoopEnd& loop) {
  // Iteration i is followed by another one: i = trips - 2 - rest, where neither i nor rest is negative.
  Dim iteration = unknown("iteration");
  const Dim rest = unknown("rest");
  std::map<std::string, Dim> symbols, at_least_one;
  if (const std::optional<std::string> symbol = loop.trips.as_symbol()) {
    symbols.emplace(*symbol, iteration + rest + 2);
    at_least_one.emplace(*symbol, rest + 1);
  } else {
    iteration = loop.trips - 2 - rest;
  }
  if (loop.start && !holds(symbolic_number(loop.outside, *loop.start, {{}, at_least_one}))) return false;
  SymbolicGivens givens;
  givens.symbols = symbols;
  givens.values.emplace(loop.counter, iteration);
  for (const Progression& p : progressions(loop, symbols))
    givens.values.emplace(p.before, p.first + Dim(p.step) * iteration);
  return holds(symbolic_number(loop.body, loop.go_on, givens));
}

}  // namespace fusewise::onnx
