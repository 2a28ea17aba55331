#include "runtime/segments.h"

#include <algorithm>
#include <map>
#include <string>

namespace fusewise::runtime {

Segments segments_of(const program::Program& program) {
  Segments segments;
  std::map<std::string, uint32_t, std::less<>> known_in;  // segment, by symbol that a step binds
  segments.first_step.push_back(0);
  for (size_t step = 0; step < program.run_steps.size(); ++step) {
    segments.of_step.push_back(static_cast<uint32_t>(segments.first_step.size() - 1));
    const std::vector<std::string>& binds = program.run_steps[step].binds;
    if (binds.empty()) continue;
    for (const std::string& symbol : binds)
      known_in[symbol] = static_cast<uint32_t>(segments.first_step.size());
    segments.first_step.push_back(step + 1);
  }
  const auto segment_of = [&](const Dim& dim) {
    uint32_t segment = 0;
    if (known_in.empty() || dim.is_constant()) return segment;
    for (const std::string& symbol : dim.symbols())
      if (const auto found = known_in.find(symbol); found != known_in.end())
        segment = std::max(segment, found->second);
    return segment;
  };
  const auto segment_of_all = [&](const std::vector<Dim>& dims) {
    uint32_t segment = 0;
    for (const Dim& dim : dims) segment = std::max(segment, segment_of(dim));
    return segment;
  };
  for (const program::Buffer& buffer : program.buffers)
    segments.of_buffer.push_back(std::max(segment_of(buffer.bytes), segment_of_all(buffer.dims)));
  for (const program::Guard& guard : program.guards)
    segments.of_guard.push_back(std::max(segment_of(guard.left), segment_of(guard.right)));
  // Also where the product of its dimensions is known earlier.
  for (const program::Output& output : program.outputs) {
    segments.of_output.push_back(std::max(segment_of_all(output.shape), segments.of_buffer[output.buffer]));
    segments.of_buffer[output.buffer] = segments.of_output.back();
  }
  for (size_t id = 0; id < program.buffers.size(); ++id) {
    const program::Buffer& buffer = program.buffers[id];
    if (buffer.kind != program::BufferKind::view) continue;
    segments.of_buffer[id] = std::max({segments.of_buffer[id], segment_of(buffer.offset),
                                       segment_of(buffer.reach), segments.of_buffer[buffer.base]});
  }
  return segments;
}

}  // namespace fusewise::runtime
