#include "cost/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cost/constants.h"

namespace fusewise::cost {

std::string Estimate::bound() const {
  std::string name = "compute";
  double most = compute_microseconds;
  const auto offer = [&](const char* other, double value) {
    if (value <= most) return;
    most = value;
    name = other;
  };
  offer("l2", l1_microseconds);
  offer("l3", l2_microseconds);
  offer("memory", l3_microseconds);
  offer("overhead", overhead_microseconds);
  return name;
}

std::string to_text(const Estimate& e) {
  std::string text = fmt::format("time {:.2f} us, bound by {}\n", e.microseconds, e.bound());
  text += fmt::format(
      "compute {:.2f} us: cycles multiply-add {:.0f}, vector {:.0f}, functions {:.0f}, conversions {:.0f}, "
      "loads and stores {:.0f}, shuffles {:.0f}\n",
      e.compute_microseconds, e.cycles.multiply_add, e.cycles.vector, e.cycles.function, e.cycles.convert,
      e.cycles.memory_access, e.cycles.shuffle);
  text += fmt::format(
      "from l2 {:.2f} us ({:.0f} bytes), from l3 {:.2f} us ({:.0f} bytes), from memory {:.2f} us ({:.0f} "
      "bytes)\n",
      e.l1_microseconds, e.l1_bytes, e.l2_microseconds, e.l2_bytes, e.l3_microseconds, e.l3_bytes);
  text += fmt::format(
      "overhead {:.2f} us, {:.0f} tiles, {} phases, parallel efficiency {:.2f}, recompute {:.2f}, "
      "lane waste {:.2f}, scratch {:.0f} bytes{}\n",
      e.overhead_microseconds, e.tiles, e.phases, e.parallel_efficiency, e.recompute, e.tail_waste,
      e.scratch_bytes, e.spills ? ", spills" : "");
  return text;
}

void finish(Estimate& e, const machine::Machine& machine, int threads) {
  const double per_microsecond = machine.gigahertz * 1e3, workers = std::max(threads, 1);
  const double tiles = std::max(e.tiles, 1.0);
  e.parallel_efficiency = tiles / (std::ceil(tiles / workers) * workers);
  const double private_share = workers * e.parallel_efficiency;
  const double shared_share = std::min(private_share, std::pow(workers, shared_scaling));
  e.compute_microseconds = e.cycles.total() * (e.spills ? spill_factor : 1) / per_microsecond / private_share;
  e.l1_microseconds = e.l1_bytes / machine.l2_bandwidth / per_microsecond / private_share;
  e.l2_microseconds = e.l2_bytes / machine.l3_bandwidth / per_microsecond / shared_share;
  e.l3_microseconds = e.l3_bytes / machine.memory_bandwidth / per_microsecond / shared_share;
  e.overhead_microseconds =
      machine.dispatch_microseconds + tiles * tile_cycles / per_microsecond / private_share;
  double sum = 0;
  for (const double term : {e.compute_microseconds, e.l1_microseconds, e.l2_microseconds, e.l3_microseconds})
    sum += std::pow(term, softness);
  e.microseconds = std::pow(sum, 1 / softness) + e.overhead_microseconds;
}

void add_phase(Estimate& e, const Estimate& phase) {
  e.cycles.multiply_add += phase.cycles.multiply_add;
  e.cycles.vector += phase.cycles.vector;
  e.cycles.function += phase.cycles.function;
  e.cycles.convert += phase.cycles.convert;
  e.cycles.memory_access += phase.cycles.memory_access;
  e.cycles.shuffle += phase.cycles.shuffle;
  e.l1_bytes += phase.l1_bytes;
  e.l2_bytes += phase.l2_bytes;
  e.l3_bytes += phase.l3_bytes;
  e.flops += phase.flops;
  // The phase that takes longest says how well threads are used.
  const bool longer = phase.microseconds > e.microseconds / e.phases;
  if (longer) {
    e.tiles = phase.tiles;
    e.parallel_efficiency = phase.parallel_efficiency;
  }
  e.recompute = std::max(e.recompute, phase.recompute);
  e.tail_waste = std::max(e.tail_waste, phase.tail_waste);
  e.spills = e.spills || phase.spills;
  e.phases += phase.phases;
  e.scratch_bytes = std::max(e.scratch_bytes, phase.scratch_bytes);
  e.compute_microseconds += phase.compute_microseconds;
  e.l1_microseconds += phase.l1_microseconds;
  e.l2_microseconds += phase.l2_microseconds;
  e.l3_microseconds += phase.l3_microseconds;
  e.overhead_microseconds += phase.overhead_microseconds;
  e.microseconds += phase.microseconds;
}

double serial_share(const Estimate& estimate, const machine::Machine& machine, int threads) {
  if (threads <= 1) return 0;
  Estimate alone = estimate, together = estimate;
  finish(alone, machine, 1);
  finish(together, machine, threads);
  const double gain = alone.microseconds - together.microseconds;
  const double price = machine.dispatch_microseconds * std::max(estimate.phases, 1);
  return gain <= 0 ? 1e9 : price / gain;
}

}  // namespace fusewise::cost
