// The operators that are imported: a row per operator and range of opset versions, one table per family.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "import/onnx/call.h"

namespace fusewise::onnx {

inline constexpr int64_t newest = INT64_MAX;

struct OpRow {
  std::string_view op_type;
  int64_t first, last;  // opset versions
  void (*import)(Call&);
  std::string_view domain = "";
};

std::span<const OpRow> activation_ops();
std::span<const OpRow> contract_ops();
std::span<const OpRow> control_ops();
std::span<const OpRow> einsum_ops();
std::span<const OpRow> elementwise_ops();
std::span<const OpRow> gather_ops();
std::span<const OpRow> host_ops();
std::span<const OpRow> norm_ops();
std::span<const OpRow> pool_ops();
std::span<const OpRow> quantize_ops();
std::span<const OpRow> recurrent_ops();
std::span<const OpRow> reduce_ops();
std::span<const OpRow> resize_ops();
std::span<const OpRow> scatter_ops();
std::span<const OpRow> shape_ops();
std::span<const OpRow> slice_ops();
std::span<const OpRow> source_ops();

// Null when no row fits.
const OpRow* find_op(std::string_view domain, std::string_view op_type, int64_t version);

// The results, when the operands are known while importing (known_tensor.h) and so the results are, too.
std::optional<std::vector<KnownTensor>> known_results(Call& call);

}  // namespace fusewise::onnx
