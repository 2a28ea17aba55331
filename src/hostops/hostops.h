// What is not a loop nest: selections and sorts, as plain functions over typed buffers. Sequential and
// deterministic: the same operands give the same results everywhere, whoever runs them. Floats are compared by
// value: -0 equals +0, and NaN counts as equal to NaN and as greater than every other number.
//
//   non_max_suppression  boxes [batches, boxes, 4] and scores [batches, classes, boxes] of one float type, int64
//                        most boxes per class, float32 overlap threshold, float32 score threshold (scalars);
//                        parameters: 1 if boxes are given by centre and size (else by two opposite corners), 1 if the
//                        score threshold counts. Result int64 [n, 3] of batch, class and box: per batch and class the
//                        boxes by falling score (equal ones by rising index) that overlap no chosen one by more than
//                        the threshold. Overlaps are computed in float32. Binds n.
//   non_zero             a tensor of any type and rank r. Result int64 [r, n]: the positions of its elements other
//                        than 0 (NaN is one), in row-major order. Binds n.
//   read_sizes           integers. Result: the same values in int64. Binds each of them, which must not be negative.
//   top_k                [.., n] of any type but boolean; parameters: k, 1 for the largest (0: the smallest), 1 if
//                        results are sorted (else: in the order of their indices). Results: values and int64 indices,
//                        [.., k]. Equal values by rising index.
//   unique               [n, ..] of any type: whole rows are compared; parameters: 1 if results are sorted (rows by
//                        their first different element), else by first occurrence. Results int64: index of the first
//                        occurrence of each different row [u], number of the different row for each row [n], how often
//                        each occurs [u]. Binds u.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/aligned_buffer.h"
#include "numerics/data_type.h"

namespace fusewise::hostops {

enum class Function : uint8_t {
#define FUNCTION(name, least, most, results) name,
#include "hostops/functions.def"
#undef FUNCTION
};

struct Facts {
  std::string_view name;
  int least_operands, most_operands, results;
};
const Facts& facts_of(Function function);
std::string_view name_of(Function function);
std::optional<Function> function_of(std::string_view name);

// Row-major, in the type's storage, aligned to the element.
struct Operand {
  DataType type = DataType::undefined;
  std::span<const int64_t> shape;
  const std::byte* data = nullptr;
};

// Where results go.
class Receiver {
 public:
  // The sizes that only the operands' values give, in the order stated above; once, before the first result, also
  // where there are none.
  virtual void bind(std::span<const int64_t> sizes) = 0;
  // The memory of a result, which holds its elements.
  virtual std::byte* result(size_t index) = 0;

 protected:
  ~Receiver() = default;
};

// Memory for what a function needs in between, kept from call to call so that equal calls allocate nothing.
class Scratch {
 public:
  void release() { used_ = 0; }
  template <class T>
  std::span<T> take(int64_t count) {
    return {reinterpret_cast<T*>(take_bytes(static_cast<size_t>(count) * sizeof(T))),
            static_cast<size_t>(count)};
  }

 private:
  std::byte* take_bytes(size_t bytes);
  std::vector<AlignedBuffer> blocks_;
  size_t used_ = 0;
};

// UserError for values that the function refuses, InternalError for operands of the wrong type or number.
void call(Function function, std::span<const Operand> operands, std::span<const int64_t> parameters,
          Receiver& receiver, Scratch& scratch);

}  // namespace fusewise::hostops
