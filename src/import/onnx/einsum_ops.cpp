// Einstein summation: the operands are multiplied one after the other, each product a contraction over the
// labels that nothing needs any more.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "import/onnx/compose.h"
#include "import/onnx/op_table.h"

namespace fusewise::onnx {

namespace {

using graph::Value;

// A value with a label for each dimension. Labels above 'z' stand for the dimensions of an ellipsis.
struct Term {
  Value value;
  std::vector<int> labels;
};

struct Equation {
  std::vector<std::string> inputs;
  std::optional<std::string> output;
};

Equation parsed(Call& c) {
  std::string text;
  for (char ch : c.string("equation", ""))
    if (ch != ' ') text += ch;
  Equation e;
  std::string left = text;
  if (const size_t arrow = text.find("->"); arrow != std::string::npos) {
    left = text.substr(0, arrow);
    e.output = text.substr(arrow + 2);
  }
  size_t begin = 0;
  for (size_t comma = left.find(','); comma != std::string::npos; comma = left.find(',', begin)) {
    e.inputs.push_back(left.substr(begin, comma - begin));
    begin = comma + 1;
  }
  e.inputs.push_back(left.substr(begin));
  if (e.inputs.size() != c.inputs()) c.fail("the equation has another number of operands");
  return e;
}

constexpr int first_ellipsis_label = 1000;

// The labels of a subscript for a tensor of that rank; an ellipsis takes the dimensions that are left,
// counted from the last one.
std::vector<int> labels_of(Call& c, const std::string& subscript, int rank) {
  const size_t dots = subscript.find("...");
  std::vector<int> labels;
  const auto letters = [&](const std::string& part) {
    for (char ch : part) {
      if (!((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z')))
        c.fail(fmt::format("'{}' in the equation", ch));
      labels.push_back(ch);
    }
  };
  if (dots == std::string::npos) {
    letters(subscript);
  } else {
    letters(subscript.substr(0, dots));
    const int covered = rank - static_cast<int>(subscript.size() - 3);
    for (int i = covered; i-- > 0;) labels.push_back(first_ellipsis_label + i);
    letters(subscript.substr(dots + 3));
  }
  if (static_cast<int>(labels.size()) != rank)
    c.fail(fmt::format("'{}' does not fit rank {}", subscript, rank));
  return labels;
}

bool contains(const std::vector<int>& labels, int label) { return std::ranges::count(labels, label) > 0; }

// Keeps the diagonal where a label occurs twice in one operand.
Term without_repeats(Call& c, Term t) {
  Compose m(c.builder());
  for (size_t d = 0; d < t.labels.size(); ++d) {
    for (size_t e = d + 1; e < t.labels.size(); ++e) {
      if (t.labels[d] != t.labels[e]) continue;
      const Shape shape = c.builder().shape(t.value);
      const Value row = c.builder().iota({DataType::int64, shape}, static_cast<int>(d));
      const Value column = c.builder().iota({DataType::int64, shape}, static_cast<int>(e));
      const Value kept = m.select(m.map(ScalarOp::equal, row, column), t.value, m.like(t.value, 0));
      t.value = m.sum(kept, {static_cast<int>(e)}, false);
      t.labels.erase(t.labels.begin() + static_cast<std::ptrdiff_t>(e));
      return without_repeats(c, std::move(t));  // at most the operand's rank deep
    }
  }
  return t;
}

// Sums over the labels that are not needed.
Term summed(Call& c, Term t, const std::vector<int>& needed) {
  std::vector<int> axes, labels;
  for (size_t d = 0; d < t.labels.size(); ++d) {
    if (contains(needed, t.labels[d]))
      labels.push_back(t.labels[d]);
    else
      axes.push_back(static_cast<int>(d));
  }
  return {c.builder().reduce(t.value, Combine::sum, axes), labels};
}

// Dimensions of 1 that meet others under the same label are repeated.
void broadcast_ellipsis(Call& c, std::vector<Term>& terms) {
  std::map<int, Dim> extents;
  for (const Term& t : terms)
    for (size_t d = 0; d < t.labels.size(); ++d) {
      const Dim& own = c.builder().shape(t.value)[d];
      const auto [entry, is_new] = extents.emplace(t.labels[d], own);
      if (!is_new && entry->second.is(1)) entry->second = own;
    }
  for (Term& t : terms) {
    Shape shape = c.builder().shape(t.value);
    for (size_t d = 0; d < shape.size(); ++d)
      if (t.labels[d] >= first_ellipsis_label) shape[d] = extents.at(t.labels[d]);
    t.value = c.builder().broadcast_to(t.value, shape);
  }
}

Term product_of(Call& c, const Term& x, const Term& y, const std::vector<int>& needed) {
  graph::DotAttributes a;
  std::vector<int> batch, x_free, y_free;
  for (size_t d = 0; d < x.labels.size(); ++d) {
    const int label = x.labels[d];
    const auto in_y = std::ranges::find(y.labels, label);
    if (in_y == y.labels.end()) {
      x_free.push_back(label);
      continue;
    }
    const int other = static_cast<int>(in_y - y.labels.begin());
    const bool stays = contains(needed, label);
    (stays ? a.lhs_batch : a.lhs_contract).push_back(static_cast<int>(d));
    (stays ? a.rhs_batch : a.rhs_contract).push_back(other);
    if (stays) batch.push_back(label);
  }
  for (int label : y.labels)
    if (!contains(x.labels, label)) y_free.push_back(label);
  Term result{c.builder().dot(x.value, y.value, a), batch};
  result.labels.insert(result.labels.end(), x_free.begin(), x_free.end());
  result.labels.insert(result.labels.end(), y_free.begin(), y_free.end());
  return result;
}

// Without an output part: the ellipsis, then the labels that occur once, by name.
std::vector<int> implicit_output(const std::vector<Term>& terms) {
  std::map<int, int> counts;
  for (const Term& t : terms)
    for (int label : t.labels) ++counts[label];
  std::vector<int> ellipsis, letters;
  for (const auto& [label, count] : counts) {
    if (label >= first_ellipsis_label)
      ellipsis.insert(ellipsis.begin(), label);
    else if (count == 1)
      letters.push_back(label);
  }
  ellipsis.insert(ellipsis.end(), letters.begin(), letters.end());
  return ellipsis;
}

void einsum(Call& c) {
  const Equation equation = parsed(c);
  std::vector<Term> terms;
  int ellipsis_rank = 0;
  for (size_t i = 0; i < c.inputs(); ++i) {
    terms.push_back({c.value(i), labels_of(c, equation.inputs[i], c.rank(i))});
    for (int label : terms.back().labels)
      ellipsis_rank = std::max(ellipsis_rank, label - first_ellipsis_label + 1);
  }
  std::vector<int> output;
  if (equation.output) {
    const bool dots = equation.output->find("...") != std::string::npos;
    const int letters = static_cast<int>(equation.output->size()) - (dots ? 3 : 0);
    output = labels_of(c, *equation.output, letters + (dots ? ellipsis_rank : 0));
  } else {
    output = implicit_output(terms);
  }
  for (Term& t : terms) t = without_repeats(c, std::move(t));
  broadcast_ellipsis(c, terms);
  Term result = terms[0];
  for (size_t i = 0; i < terms.size(); ++i) {
    std::vector<int> needed = output;
    for (size_t j = i + 1; j < terms.size(); ++j)
      needed.insert(needed.end(), terms[j].labels.begin(), terms[j].labels.end());
    if (i == 0) {
      result = summed(c, result, needed);
      continue;
    }
    std::vector<int> own = needed;
    own.insert(own.end(), result.labels.begin(), result.labels.end());
    result = summed(c, product_of(c, result, summed(c, terms[i], own), needed), needed);
  }
  std::vector<int> permutation;
  for (int label : output) {
    const auto at = std::ranges::find(result.labels, label);
    if (at == result.labels.end()) c.fail("the equation's result has a label that no operand has");
    permutation.push_back(static_cast<int>(at - result.labels.begin()));
  }
  c.set(c.builder().transpose(result.value, permutation));
}

constexpr OpRow rows[] = {
    {"Einsum", 12, newest, einsum},
};

}  // namespace

std::span<const OpRow> einsum_ops() { return rows; }

}  // namespace fusewise::onnx
