#include "compiler/program_parts.h"

#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

namespace fusewise::compiler {

using program::BufferId;
using program::BufferKind;
using program::Program;

BufferId add_buffer(Program& program, BufferKind kind, uint32_t index, Dim bytes, std::string name) {
  program::Buffer buffer;
  buffer.kind = kind;
  buffer.index = index;
  buffer.bytes = std::move(bytes);
  buffer.name = std::move(name);
  program.buffers.push_back(std::move(buffer));
  return static_cast<BufferId>(program.buffers.size() - 1);
}

Dim bytes_of_type(const graph::TensorType& type) { return product(type.shape) * Dim(bytes_of(type.element)); }

std::vector<program::Step> largest_first(const Program& program, std::vector<program::Step> steps) {
  std::map<BufferId, size_t> maker;
  std::vector<std::vector<size_t>> next(steps.size());
  std::vector<int> waits(steps.size(), 0);
  std::priority_queue<std::tuple<int64_t, int64_t, size_t>> ready;  // the earlier one of two equals
  const auto offer = [&](size_t i) {
    int64_t bytes = 0;
    for (BufferId id : steps[i].buffers)
      if (program.buffers[id].kind == BufferKind::constant) bytes += program.buffers[id].bytes.value();
    ready.push({bytes, -static_cast<int64_t>(i), i});
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    std::set<size_t> makers;
    for (BufferId id : steps[i].buffers)
      if (const auto [it, fresh] = maker.emplace(id, i);
          program.buffers[id].kind == BufferKind::once && it->second != i)
        makers.insert(it->second);
    waits[i] = static_cast<int>(makers.size());
    for (size_t m : makers) next[m].push_back(i);
    if (makers.empty()) offer(i);
  }
  std::vector<program::Step> sorted;
  while (!ready.empty()) {
    const size_t i = std::get<2>(ready.top());
    ready.pop();
    sorted.push_back(std::move(steps[i]));
    for (size_t n : next[i])
      if (--waits[n] == 0) offer(n);
  }
  return sorted;
}

}  // namespace fusewise::compiler
