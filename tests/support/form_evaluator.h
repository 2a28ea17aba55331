// Evaluates a form naively, element by element, in strict order: what forms mean, in a page. For tests of
// forms and of what is made from them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "graph/form.h"
#include "numerics/scalar_op.h"

namespace fusewise::test {

struct Array {
  DataType type = DataType::undefined;
  std::vector<int64_t> shape;
  std::vector<Scalar> values;
};

inline int64_t count_of(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}
inline Scalar number(DataType type, double value) {
  return convert(Scalar{DataType::float64, value, 0}, type);
}
inline std::vector<int64_t> evaluated(const Shape& shape, const SymbolValues& symbols) {
  std::vector<int64_t> result;
  for (const Dim& d : shape) result.push_back(d.evaluate(symbols));
  return result;
}
// Steps a row-major counter; false after the last.
inline bool next(std::vector<int64_t>& point, const std::vector<int64_t>& extents) {
  for (size_t d = point.size(); d-- > 0;) {
    if (++point[d] < extents[d]) return true;
    point[d] = 0;
  }
  return false;
}
inline Scalar combine_two(Combine combine, const Scalar& a, const Scalar& b) {
  const ScalarOp op[] = {ScalarOp::add, ScalarOp::mul, ScalarOp::max, ScalarOp::min};
  const Scalar pair[] = {a, b};
  return fusewise::evaluate(op[static_cast<int>(combine)], pair, a.type);
}
inline Scalar identity_of(Combine combine, DataType type) {
  if (combine == Combine::sum || combine == Combine::product)
    return number(type, combine == Combine::sum ? 0 : 1);
  const double infinity = std::numeric_limits<double>::infinity();
  const double value = combine == Combine::max ? -infinity : infinity;
  if (type == DataType::uint64 && combine == Combine::min) return {type, 0, -1};
  return number(type, value);
}

// The strict order of numerics/reduction_order.h.
inline Scalar combine_strictly(Combine combine, DataType type, const std::vector<Scalar>& elements) {
  const ReductionOrder order;
  const size_t block = static_cast<size_t>(order.block), lanes = static_cast<size_t>(order.lanes);
  std::vector<Scalar> done;
  for (size_t begin = 0, b = 0; begin < elements.size(); begin += block, ++b) {
    std::vector<Scalar> lane;
    for (size_t r = begin; r < std::min(begin + block, elements.size()); ++r) {
      const size_t l = (r - begin) % lanes;
      if (l >= lane.size()) lane.push_back(identity_of(combine, type));
      lane[l] = combine_two(combine, lane[l], elements[r]);
    }
    for (size_t width = lanes / 2; width > 0; width /= 2)
      for (size_t l = 0; l < width && l + width < lane.size(); ++l)
        lane[l] = combine_two(combine, lane[l], lane[l + width]);
    done.push_back(lane[0]);
    for (size_t bits = b; bits & 1U; bits >>= 1) {
      done[done.size() - 2] = combine_two(combine, done[done.size() - 2], done.back());
      done.pop_back();
    }
  }
  if (done.empty()) return identity_of(combine, type);
  while (done.size() > 1) {
    done[done.size() - 2] = combine_two(combine, done[done.size() - 2], done.back());
    done.pop_back();
  }
  return done[0];
}

class FormEvaluator {
 public:
  FormEvaluator(const graph::Form& form, const std::vector<Array>& operands, const SymbolValues& symbols)
      : form_(form), operands_(operands), symbols_(symbols) {
    for (const graph::Axis& axis : form.axes) extents_.push_back(axis.extent.evaluate(symbols));
  }

  Array run(DataType element) {
    const size_t parallel = static_cast<size_t>(form_.parallel_axes());
    Array result{element, {extents_.begin(), extents_.begin() + static_cast<std::ptrdiff_t>(parallel)}, {}};
    if (count_of(result.shape) == 0) return result;
    std::vector<int64_t> outer(parallel);
    do {
      point_ = outer;
      point_.resize(extents_.size());
      result.values.push_back(convert(form_.accumulation ? accumulate(parallel) : body(), element));
      touched_ends.push_back(touched.size());
    } while (next(outer, result.shape));
    return result;
  }

  // The elements that are read: (operand, flat index), those of result element i before touched_ends[i]. For
  // tests of what depends on what.
  std::vector<std::pair<int, int64_t>> touched;
  std::vector<size_t> touched_ends;

 private:
  int64_t value_of(const graph::LinearIndex& index) const {
    int64_t sum = index.constant.evaluate(symbols_);
    for (const graph::AxisTerm& term : index.terms)
      sum += term.coefficient.evaluate(symbols_) * point_[static_cast<size_t>(term.axis)];
    return sum;
  }
  int64_t value_of(const graph::IndexExpr& index) {
    int64_t sum = value_of(index.linear);
    for (const graph::QuasiTerm& term : index.quasi) {
      int64_t value = floor_div(Dim(value_of(term.inner)), term.divisor.evaluate(symbols_)).value();
      const int64_t modulus = term.modulus.evaluate(symbols_);
      if (!term.modulus.is(0)) value = modulo(Dim(value), modulus).value();
      sum += value * term.coefficient.evaluate(symbols_);
    }
    if (index.gathered) {
      const int64_t extent = index.gathered_extent.evaluate(symbols_);
      int64_t gathered = read(*index.gathered).i;
      if (gathered < 0) gathered += extent;
      sum += std::min(std::max<int64_t>(gathered, 0), extent - 1);
    }
    return sum;
  }
  bool holds(int read_number) {
    for (const graph::Guard& guard : form_.reads[static_cast<size_t>(read_number)].guards) {
      const int64_t value = value_of(guard.expr);
      if (value < guard.low.evaluate(symbols_) || value >= guard.high.evaluate(symbols_)) return false;
    }
    return true;
  }
  Scalar read(int read_number) {
    const graph::Read& access = form_.reads[static_cast<size_t>(read_number)];
    const Array& array = operands_.at(static_cast<size_t>(access.operand));
    if (array.shape.size() != access.index.size()) throw std::logic_error("a read has another rank");
    int64_t flat = 0;
    for (size_t d = 0; d < array.shape.size(); ++d) {
      const int64_t i = value_of(access.index[d]);
      if (i < 0 || i >= array.shape[d]) throw std::logic_error("a read is out of bounds");
      flat = flat * array.shape[d] + i;
    }
    touched.emplace_back(access.operand, flat);
    return array.values.at(static_cast<size_t>(flat));
  }
  Scalar value_of_body(int i) {
    using BodyKind = graph::BodyNode::Kind;
    const graph::BodyNode& node = form_.body.at(static_cast<size_t>(i));
    switch (node.kind) {
      case BodyKind::read:
        return read(node.read);
      case BodyKind::index:
        return convert(Scalar{DataType::int64, 0, value_of(node.index)}, node.type);
      case BodyKind::constant:
        return node.constant;
      case BodyKind::piece:
        return holds(node.read) ? read(node.read) : value_of_body(node.arguments.at(0));
      case BodyKind::apply:
        break;
    }
    std::vector<Scalar> arguments;
    for (int argument : node.arguments) arguments.push_back(value_of_body(argument));
    if (node.op == ScalarOp::cast) return convert(arguments.at(0), node.type);
    return fusewise::evaluate(node.op, arguments, node.type);
  }
  Scalar body() { return value_of_body(static_cast<int>(form_.body.size()) - 1); }

  static Scalar multiply_add(const Scalar& a, const Scalar& b, const Scalar& c) {
    if (c.type == DataType::float64) return {c.type, std::fma(a.f, b.f, c.f), 0};
    if (c.type == DataType::float32) {
      const float sum = std::fma(static_cast<float>(a.f), static_cast<float>(b.f), static_cast<float>(c.f));
      return {c.type, static_cast<double>(sum), 0};
    }
    const Scalar pair[] = {a, b};
    return combine_two(Combine::sum, c, fusewise::evaluate(ScalarOp::mul, pair, c.type));
  }
  Scalar accumulate(size_t parallel) {
    const graph::Accumulation& how = *form_.accumulation;
    Scalar sum = identity_of(how.combine, how.accumulator);
    std::vector<Scalar> elements;
    std::vector<int64_t> inner_extents(extents_.begin() + static_cast<std::ptrdiff_t>(parallel),
                                       extents_.end());
    if (count_of(inner_extents) == 0) return sum;
    std::vector<int64_t> inner(inner_extents.size());
    do {
      std::copy(inner.begin(), inner.end(), point_.begin() + static_cast<std::ptrdiff_t>(parallel));
      bool present = true;
      for (size_t r = 0; r < form_.reads.size(); ++r) present = present && holds(static_cast<int>(r));
      if (!present) continue;
      const graph::BodyNode& last = form_.body.back();
      if (how.multiply_add)
        sum = multiply_add(value_of_body(last.arguments.at(0)), value_of_body(last.arguments.at(1)), sum);
      else if (how.sequential)
        sum = combine_two(how.combine, sum, body());
      else
        elements.push_back(body());
    } while (next(inner, inner_extents));
    return how.sequential ? sum : combine_strictly(how.combine, how.accumulator, elements);
  }

  const graph::Form& form_;
  const std::vector<Array>& operands_;
  const SymbolValues& symbols_;
  std::vector<int64_t> extents_;
  std::vector<int64_t> point_;
};

inline Array evaluate_form(const graph::Form& form, const std::vector<Array>& operands, DataType element,
                           const SymbolValues& symbols = {}) {
  return FormEvaluator(form, operands, symbols).run(element);
}

}  // namespace fusewise::test
