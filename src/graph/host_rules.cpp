#include "graph/host_rules.h"

#include <fmt/core.h>

#include <set>

#include "base/error.h"

namespace fusewise::graph {

namespace {

using hostops::Function;

class HostRule {
 public:
  HostRule(const HostAttributes& a, std::span<const TensorType> operands) : a_(a), operands_(operands) {}

  Inference run() {
    const hostops::Facts& facts = hostops::facts_of(a_.function);
    const auto count = static_cast<int>(operands_.size());
    expect(count >= facts.least_operands && count <= facts.most_operands,
           "it takes another number of operands");
    for (const TensorType& type : operands_)
      expect(is_computable(type.element), "nothing computes in an operand's type");
    expect(std::set<std::string>(a_.symbols.begin(), a_.symbols.end()).size() == a_.symbols.size(),
           "a symbol is bound twice");
    switch (a_.function) {
      case Function::non_max_suppression:
        non_max_suppression();
        break;
      case Function::non_zero:
        takes(0, 1);
        add(DataType::int64, {Dim(operand(0).rank()), symbol(0)});
        break;
      case Function::read_sizes:
        read_sizes();
        break;
      case Function::top_k:
        top_k();
        break;
      case Function::unique:
        takes(1, 1);
        expect(operand(0).rank() >= 1, "the operand has no rows");
        add(DataType::int64, {symbol(0)});
        add(DataType::int64, {operand(0).shape[0]});
        add(DataType::int64, {symbol(0)});
        break;
    }
    return std::move(inference_);
  }

 private:
  const TensorType& operand(size_t i) const { return operands_[i]; }
  Dim symbol(size_t i) const { return Dim::symbol(a_.symbols[i]); }
  void expect(bool condition, const char* words) const {
    if (!condition) throw UserError(fmt::format("host {}: {}", hostops::name_of(a_.function), words));
  }
  void takes(size_t parameters, size_t symbols) const {
    expect(a_.parameters.size() == parameters, "it takes another number of parameters");
    expect(a_.symbols.size() == symbols, "it binds another number of symbols");
  }
  void add(DataType element, Shape shape) { inference_.results.push_back({element, std::move(shape)}); }
  void same(const Dim& a, const Dim& b) {
    expect(a == b || !provably_different(a, b), "the operands' dimensions differ");
    if (a != b) inference_.requirements.push_back({Requirement::Kind::equal, a, b});
  }

  void non_max_suppression() {
    takes(2, 1);
    const TensorType &boxes = operand(0), &scores = operand(1);
    expect(boxes.rank() == 3 && scores.rank() == 3, "boxes and scores have not three dimensions");
    expect(is_float(boxes.element) && boxes.element == scores.element,
           "boxes and scores are not of one float type");
    same(boxes.shape[2], 4);
    same(boxes.shape[0], scores.shape[0]);
    same(boxes.shape[1], scores.shape[2]);
    for (size_t i = 2; i < 5; ++i) expect(operand(i).rank() == 0, "a limit is no scalar");
    expect(
        operand(2).element == DataType::int64 && is_float(operand(3).element) && is_float(operand(4).element),
        "a limit has the wrong type");
    add(DataType::int64, {symbol(0), 3});
  }

  void read_sizes() {
    const Dim count = product(operand(0).shape);
    expect(is_integer(operand(0).element), "sizes are not integers");
    expect(count.is_constant(), "the number of sizes is not constant");
    takes(0, static_cast<size_t>(count.value()));
    add(DataType::int64, operand(0).shape);
  }

  void top_k() {
    takes(3, 0);
    const TensorType& x = operand(0);
    expect(x.rank() >= 1, "the operand has no dimension");
    expect(x.element != DataType::boolean, "booleans are not ordered");
    const Dim& k = a_.parameters[0];
    const Dim left = x.shape.back() - k;
    if (const auto high = left.upper_bound(); high && *high < 0)
      throw UserError(
          fmt::format("host top_k: {} elements of {} are wanted", k.to_string(), x.shape.back().to_string()));
    if (const auto low = left.lower_bound(); !low || *low < 0)
      inference_.requirements.push_back({Requirement::Kind::at_least, x.shape.back(), k});
    Shape shape = x.shape;
    shape.back() = k;
    add(x.element, shape);
    add(DataType::int64, shape);
  }

  const HostAttributes& a_;
  std::span<const TensorType> operands_;
  Inference inference_;
};

}  // namespace

Inference infer_host(const HostAttributes& attributes, std::span<const TensorType> operands) {
  return HostRule(attributes, operands).run();
}

}  // namespace fusewise::graph
