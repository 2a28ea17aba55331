// Loads, stores and allocations of the machine, with all that they check.
#include <fmt/format.h>

#include "base/error.h"
#include "kernel/interpreter/machine.h"

namespace fusewise::kernel {

void Machine::allocate(Frame& frame, const Instruction& in) {
  const int64_t count = frame.registers[in.a];
  if (count < 0 || count > most_elements)
    fault(Fault::limit, in.statement, fmt::format("{} elements for '{}'", count, buffer_name(in)));
  std::unique_ptr<Memory>& memory = frame.owned[in.owner];
  if (!memory || memory->count != count) {
    memory = std::make_unique<Memory>();
    memory->count = count;
    memory->type = in.type;
    memory->bytes = bytes_of(in.type);
    memory->storage = std::make_unique<char[]>(static_cast<size_t>(count * memory->bytes));
    memory->data = memory->storage.get();
    memory->stored.resize(static_cast<size_t>(count));
    memory->watched = options_.check_races;
    memory->epoch = 0;
  }
  ++memory->epoch;
  memory->owner = frame.agent;
  frame.views[in.buffer] = {memory.get(), 0};
}

int64_t Machine::locate(const View& view, int64_t index, const Instruction& in) const {
  const int64_t place =
      static_cast<int64_t>(static_cast<uint64_t>(index) + static_cast<uint64_t>(view.offset));
  if (place < 0 || place >= view.memory->count)
    fault(Fault::out_of_bounds, in.statement,
          fmt::format("element {} of '{}', which has {}", place, buffer_name(in), view.memory->count));
  return place;
}

void Machine::watch(Memory& memory, int64_t index, bool is_store, const Frame& frame, const Instruction& in) {
  if (memory.cells.empty()) {
    // Private until somebody else comes, and what its owner did before is in order.
    if (memory.owner == frame.agent) return;
    memory.cells.resize(static_cast<size_t>(memory.count));
  }
  Cell& cell = memory.cells[static_cast<size_t>(index)];
  if (cell.epoch != memory.epoch) cell = {memory.epoch, {}, {}, {}};
  const Access now = {frame.agent, interval_};
  const auto conflict = [&](const Access& earlier, const char* what) {
    if (earlier.agent == UINT32_MAX || !agents_.concurrent(earlier, now)) return;
    fault(Fault::race, in.statement,
          fmt::format("element {} of '{}' is {} here and {} by another {}", index, buffer_name(in),
                      is_store ? "stored" : "loaded", what,
                      agents_.part_as_blocks(earlier.agent, now.agent) ? "block" : "thread"));
  };
  conflict(cell.writer, "stored");
  if (is_store) {
    conflict(cell.reader, "loaded");
    conflict(cell.earlier_reader, "loaded");
    cell.writer = now;
    return;
  }
  if (cell.reader.agent != now.agent) cell.earlier_reader = cell.reader;
  cell.reader = now;
}

void Machine::load(Frame& frame, const Instruction& in) {
  const View& view = frame.views[in.buffer];
  check(view.memory != nullptr, "a buffer is read before it is allocated");
  Memory& memory = *view.memory;
  for (uint32_t i = 0; i < in.lanes; ++i) {
    int64_t& result = frame.registers[in.dst + i];
    if (in.b != none && frame.registers[in.b + i] == 0) {
      result = 0;
      continue;
    }
    const int64_t place = locate(view, frame.registers[in.a + i], in);
    if (!memory.stored.empty() && memory.stored[static_cast<size_t>(place)] != memory.epoch)
      fault(Fault::uninitialised, in.statement, fmt::format("element {} of '{}'", place, buffer_name(in)));
    if (memory.watched) watch(memory, place, false, frame, in);
    result = memory.load(place);
  }
}

void Machine::store(Frame& frame, const Instruction& in) {
  const View& view = frame.views[in.buffer];
  check(view.memory != nullptr, "a buffer is written before it is allocated");
  Memory& memory = *view.memory;
  for (uint32_t i = 0; i < in.lanes; ++i) {
    if (in.c != none && frame.registers[in.c + i] == 0) continue;
    const int64_t place = locate(view, frame.registers[in.a + i], in);
    if (!memory.stored.empty()) memory.stored[static_cast<size_t>(place)] = memory.epoch;
    if (memory.watched) watch(memory, place, true, frame, in);
    memory.store(place, frame.registers[in.b + i]);
  }
}

}  // namespace fusewise::kernel
