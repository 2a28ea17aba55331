#include "import/onnx/op_table.h"

#include <map>
#include <utility>
#include <vector>

namespace fusewise::onnx {

namespace {

using Key = std::pair<std::string_view, std::string_view>;

const std::map<Key, std::vector<const OpRow*>>& table() {
  static const auto rows = [] {
    std::map<Key, std::vector<const OpRow*>> result;
    for (const auto family : {activation_ops, contract_ops, control_ops, einsum_ops, elementwise_ops,
                              gather_ops, host_ops, norm_ops, pool_ops, quantize_ops, recurrent_ops,
                              reduce_ops, resize_ops, scatter_ops, shape_ops, slice_ops, source_ops})
      for (const OpRow& row : family()) result[{row.domain, row.op_type}].push_back(&row);
    return result;
  }();
  return rows;
}

}  // namespace

const OpRow* find_op(std::string_view domain, std::string_view op_type, int64_t version) {
  const auto found = table().find({domain, op_type});
  if (found == table().end()) return nullptr;
  for (const OpRow* row : found->second)
    if (version >= row->first && version <= row->last) return row;
  return nullptr;
}

}  // namespace fusewise::onnx
