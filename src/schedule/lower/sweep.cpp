#include "schedule/sweep.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "graph/sweep.h"
#include "schedule/lower/emitter.h"

namespace fusewise::schedule {

namespace {

using graph::Sweep;
using kernel::Type;

// Neighbouring lines that one block does together, and elements that one block copies.
constexpr int64_t most_lines = 64;
constexpr int64_t copied_elements = 4096;

class SweepLowering : Emitter {
 public:
  SweepLowering(const Graph& graph, NodeId node)
      : graph_(graph),
        node_(graph.node(node)),
        sweep_(graph::sweep_of(node_)),
        element_(type({node, 0}).element) {
    for (Value operand : node_.operands) add_argument(graph, operand, false);
    add_argument(graph, {node, 0}, true);
    result_buffer_ = arguments_.at({node, 0});
    result_strides_ = strides_of(type({node, 0}).shape);
    // Lines are neighbours where the innermost dimension is not the swept one.
    const Shape& steps = type(operand(sweep_.value)).shape;
    innermost_ = static_cast<int>(steps.size()) - 1;
    if (innermost_ == sweep_.axis || steps.back().is(1)) innermost_ = -1;
  }

  LoweredKernel run() {
    if (sweep_.base) result_.kernel.phases.push_back(copy_base());
    result_.kernel.phases.push_back(over_lines());
    return std::move(result_);
  }

 private:
  const graph::TensorType& type(Value value) const { return graph_.type(value); }
  Value operand(int number) const { return node_.operands[static_cast<size_t>(number)]; }

  std::vector<ExprId> strides_of(const Shape& shape) {
    std::vector<ExprId> strides(shape.size());
    Dim stride = 1;
    for (size_t d = shape.size(); d-- > 0; stride = stride * shape[d]) strides[d] = dim_expr(stride);
    return strides;
  }
  // The address without the swept dimension, whose stride remains to be added.
  ExprId address(const std::vector<ExprId>& strides, const std::vector<ExprId>& coordinates) {
    ExprId sum = zero();
    for (size_t d = 0; d < coordinates.size(); ++d)
      if (coordinates[d] != kernel::none) sum = builder_.add(sum, builder_.mul(coordinates[d], strides[d]));
    return sum;
  }

  // `count` elements from `begin` on, in vectors, and the rest one by one.
  StmtId over_range(ExprId begin, ExprId count, int64_t piece, const std::function<StmtId(ExprId)>& body) {
    const ExprId step = builder_.integer(piece);
    const ExprId pieces = builder_.floor_div(count, step);
    const ExprId done = builder_.mul(pieces, step);
    const StmtId whole = serial_loop("t", pieces, [&](ExprId t) {
      const ExprId first = builder_.add(begin, builder_.mul(t, step));
      return serial_loop("v", step, [&](ExprId v) { return body(builder_.add(first, v)); }, LoopKind::vector);
    });
    const StmtId rest = serial_loop("r", builder_.sub(count, done), [&](ExprId r) {
      return body(builder_.add(begin, builder_.add(done, r)));
    });
    return builder_.block({whole, rest});
  }

  StmtId copy_base() {
    const BufferId base = arguments_.at(operand(*sweep_.base));
    const ExprId count = dim_expr(product(type(operand(*sweep_.base)).shape));
    const ExprId size = builder_.integer(copied_elements);
    const ExprId blocks =
        builder_.floor_div(builder_.add(count, builder_.integer(copied_elements - 1)), size);
    return serial_loop(
        "b", blocks,
        [&](ExprId block) {
          const ExprId begin = builder_.mul(block, size);
          const ExprId length = builder_.min(size, builder_.sub(count, begin));
          return over_range(begin, length, most_lines, [&](ExprId i) {
            return builder_.store(result_buffer_, i, builder_.load(base, i));
          });
        },
        LoopKind::block);
  }

  // A block is one line, or up to most_lines neighbouring ones.
  StmtId over_lines() {
    const Shape& steps = type(operand(sweep_.value)).shape;
    ExprId blocks = builder_.integer(1), pieces = kernel::none;
    std::vector<ExprId> extents;
    for (size_t d = 0; d < steps.size(); ++d) {
      extents.push_back(dim_expr(steps[d]));
      if (static_cast<int>(d) == sweep_.axis || static_cast<int>(d) == innermost_) continue;
      blocks = builder_.mul(blocks, extents[d]);
    }
    const ExprId lines = builder_.integer(most_lines);
    if (innermost_ >= 0) {
      pieces = builder_.floor_div(builder_.add(extents.back(), builder_.integer(most_lines - 1)), lines);
      blocks = builder_.mul(blocks, pieces);
    }
    return serial_loop(
        "b", blocks,
        [&](ExprId block) {
          ExprId rest = block, begin = zero(), count = builder_.integer(1);
          if (innermost_ >= 0) {
            begin = builder_.mul(builder_.floor_mod(rest, pieces), lines);
            rest = builder_.floor_div(rest, pieces);
            count = builder_.min(lines, builder_.sub(extents.back(), begin));
          }
          std::vector<ExprId> coordinates(steps.size(), kernel::none);
          for (size_t d = steps.size(); d-- > 0;) {
            if (static_cast<int>(d) == sweep_.axis || static_cast<int>(d) == innermost_) continue;
            coordinates[d] = builder_.floor_mod(rest, extents[d]);
            rest = builder_.floor_div(rest, extents[d]);
          }
          return sweep_.base ? scatter(coordinates, begin, count) : scan(coordinates, begin, count);
        },
        LoopKind::block);
  }

  StmtId over_steps(const std::function<StmtId(ExprId)>& body) {
    const ExprId count = dim_expr(type(operand(sweep_.value)).shape[static_cast<size_t>(sweep_.axis)]);
    return serial_loop("j", count, [&](ExprId j) {
      return body(sweep_.reverse ? builder_.sub(builder_.sub(count, builder_.integer(1)), j) : j);
    });
  }
  StmtId over_neighbours(ExprId begin, ExprId count, bool vectors,
                         const std::function<StmtId(ExprId)>& body) {
    if (innermost_ < 0) return body(zero());
    if (vectors) return over_range(begin, count, 16, body);
    return serial_loop("i", count, [&](ExprId i) { return body(builder_.add(begin, i)); });
  }

  // The running values of the block's lines lie in scratch.
  StmtId scan(const std::vector<ExprId>& coordinates, ExprId begin, ExprId count) {
    const DataType accumulator = accumulator_of(element_);
    kernel::Buffer running;
    running.name = "running";
    running.element = accumulator;
    running.scope = kernel::Scope::scratch;
    running.written = true;
    running.size = builder_.integer(innermost_ < 0 ? 1 : most_lines);
    const BufferId state = builder_.buffer(running);
    const BufferId values = arguments_.at(operand(sweep_.value));
    const auto swept = static_cast<size_t>(sweep_.axis);
    const ExprId base = address(result_strides_, coordinates);
    std::vector<StmtId> statements{builder_.allocate(state)};
    statements.push_back(over_neighbours(begin, count, true, [&](ExprId i) {
      return builder_.store(state, builder_.sub(i, begin), identity_of(*sweep_.combine, accumulator));
    }));
    statements.push_back(over_steps([&](ExprId j) {
      const ExprId step = builder_.add(base, builder_.mul(j, result_strides_[swept]));
      return over_neighbours(begin, count, true, [&](ExprId i) {
        const ExprId at = builder_.add(step, i), place = builder_.sub(i, begin);
        const VariableId before = builder_.variable("before", {accumulator, 1});
        const VariableId after = builder_.variable("after", {accumulator, 1});
        const StmtId let_before = builder_.let(before, builder_.load(state, place));
        const ExprId next = combined(*sweep_.combine, accumulator, builder_.read(before),
                                     convert(builder_.load(values, at), accumulator));
        const StmtId let_after = builder_.let(after, next);
        const ExprId delivered = builder_.read(sweep_.exclusive ? before : after);
        return builder_.block({let_before, let_after, builder_.store(state, place, builder_.read(after)),
                               builder_.store(result_buffer_, at, convert(delivered, element_))});
      });
    }));
    return builder_.block(std::move(statements));
  }

  StmtId scatter(const std::vector<ExprId>& coordinates, ExprId begin, ExprId count) {
    const graph::TensorType& index = type(operand(*sweep_.index));
    const auto swept = static_cast<size_t>(sweep_.axis);
    std::vector<ExprId> update_strides = strides_of(type(operand(sweep_.value)).shape);
    std::vector<ExprId> index_strides = strides_of(index.shape);
    for (size_t d = 0; d < index.shape.size(); ++d)
      if (index.shape[d].is(1)) index_strides[d] = zero();
    const ExprId to = address(result_strides_, coordinates), from = address(update_strides, coordinates),
                 where = address(index_strides, coordinates);
    const bool shared_index = innermost_ < 0 || index.shape.back().is(1);
    return over_steps([&](ExprId j) {
      const ExprId update = builder_.add(from, builder_.mul(j, update_strides[swept]));
      const ExprId place = builder_.add(where, builder_.mul(j, index_strides[swept]));
      const auto store = [&](ExprId row, ExprId i) {
        const ExprId at = builder_.add(builder_.add(to, builder_.mul(row, result_strides_[swept])), i);
        ExprId value = builder_.load(arguments_.at(operand(sweep_.value)), builder_.add(update, i));
        if (sweep_.combine)
          value = combined(*sweep_.combine, element_, builder_.load(result_buffer_, at), value);
        return builder_.store(result_buffer_, at, value);
      };
      if (shared_index)
        return at_row(place, [&](ExprId row) {
          return over_neighbours(begin, count, true, [&](ExprId i) { return store(row, i); });
        });
      return over_neighbours(begin, count, false, [&](ExprId i) {
        const ExprId own = builder_.add(place, builder_.mul(i, index_strides.back()));
        return at_row(own, [&](ExprId row) { return store(row, i); });
      });
    });
  }

  // Only where the index lies inside of the axis.
  StmtId at_row(ExprId place, const std::function<StmtId(ExprId)>& body) {
    const ExprId extent = dim_expr(type(operand(*sweep_.base)).shape[static_cast<size_t>(sweep_.axis)]);
    const VariableId given = builder_.variable("given", {DataType::int64, 1});
    const VariableId row = builder_.variable("row", {DataType::int64, 1});
    const StmtId let_given =
        builder_.let(given, signed_index(builder_.load(arguments_.at(operand(*sweep_.index)), place)));
    const ExprId index = builder_.read(given);
    const StmtId let_row =
        builder_.let(row, builder_.apply(ScalarOp::select, Type{DataType::int64, 1},
                                         builder_.less(index, zero()), builder_.add(index, extent), index));
    const ExprId at = builder_.read(row);
    const ExprId inside =
        builder_.logical_and(builder_.less(builder_.integer(-1), at), builder_.less(at, extent));
    return builder_.block({let_given, let_row, builder_.branch(inside, body(at))});
  }

  const Graph& graph_;
  const graph::Node& node_;
  Sweep sweep_;
  DataType element_;
  BufferId result_buffer_ = kernel::none;
  std::vector<ExprId> result_strides_;
  int innermost_ = -1;
};

}  // namespace

LoweredKernel lower_sweep(const Graph& graph, NodeId node) { return SweepLowering(graph, node).run(); }

}  // namespace fusewise::schedule
