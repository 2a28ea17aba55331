#include "cost/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cost/constants.h"

namespace fusewise::cost {

std::string Estimate::bound() const {
  const Times& t = times();
  std::string name = "compute";
  double most = t.compute;
  const auto offer = [&](const char* other, double value) {
    if (value <= most) return;
    most = value;
    name = other;
  };
  offer("l2", t.l1);
  offer("l3", t.l2);
  offer("memory", t.l3);
  offer("overhead", t.overhead);
  return name;
}

std::string to_text(const Estimate& e) {
  const Times& t = e.times();
  std::string text = fmt::format("time {:.2f} us, bound by {}\n", e.microseconds, e.bound());
  text += fmt::format(
      "compute {:.2f} us: cycles multiply-add {:.0f}, vector {:.0f}, functions {:.0f}, conversions {:.0f}, "
      "loads and stores {:.0f}, shuffles {:.0f}\n",
      t.compute, e.cycles.multiply_add, e.cycles.vector, e.cycles.function, e.cycles.convert,
      e.cycles.memory_access, e.cycles.shuffle);
  text += fmt::format(
      "from l2 {:.2f} us ({:.0f} bytes), from l3 {:.2f} us ({:.0f} bytes), from memory {:.2f} us ({:.0f} "
      "bytes)\n",
      t.l1, e.l1_bytes, t.l2, e.l2_bytes, t.l3, e.l3_bytes);
  text += fmt::format(
      "overhead {:.2f} us, {:.0f} tiles, {} phases, parallel efficiency {:.2f}, recompute {:.2f}, "
      "lane waste {:.2f}, scratch {:.0f} bytes{}{}\n",
      t.overhead, e.tiles, e.phases, e.parallel_efficiency, e.recompute, e.tail_waste, e.scratch_bytes,
      e.spills ? ", spills" : "", e.alone.total < e.together.total ? ", on one thread" : "");
  return text;
}

namespace {

Times times_on(int threads, double efficiency, const Estimate& e, const machine::Machine& machine) {
  const double per_microsecond = machine.gigahertz * 1e3, workers = threads;
  const double tiles = std::max(e.tiles, 1.0);
  const double private_share = workers * efficiency;
  const double shared_share = std::min(private_share, std::pow(workers, shared_scaling));
  Times t;
  t.compute = e.cycles.total() * (e.spills ? spill_factor : 1) / per_microsecond / private_share;
  t.l1 = e.l1_bytes / machine.l2_bandwidth / per_microsecond / private_share;
  t.l2 = e.l2_bytes / machine.l3_bandwidth / per_microsecond / shared_share;
  t.l3 = e.l3_bytes / machine.memory_bandwidth / per_microsecond / shared_share;
  t.overhead = machine.dispatch_microseconds + tiles * tile_cycles / per_microsecond / private_share;
  if (threads > 1) t.overhead += machine.fork_join_microseconds;
  double sum = 0;
  for (const double term : {t.compute, t.l1, t.l2, t.l3}) sum += std::pow(term, softness);
  t.total = std::pow(sum, 1 / softness) + t.overhead;
  return t;
}

void add(Times& t, const Times& more) {
  t.compute += more.compute;
  t.l1 += more.l1;
  t.l2 += more.l2;
  t.l3 += more.l3;
  t.overhead += more.overhead;
  t.total += more.total;
}

}  // namespace

void finish(Estimate& e, const machine::Machine& machine, int threads) {
  const double tiles = std::max(e.tiles, 1.0), workers = std::max(threads, 1);
  e.parallel_efficiency = tiles / (std::ceil(tiles / workers) * workers);
  e.alone = times_on(1, 1, e, machine);
  e.together = threads > 1 ? times_on(threads, e.parallel_efficiency, e, machine) : e.alone;
  e.microseconds = e.times().total;
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
  add(e.alone, phase.alone);
  add(e.together, phase.together);
  e.microseconds = e.times().total;
}

double fork_join_microseconds(const Estimate& estimate, const machine::Machine& machine) {
  return machine.fork_join_microseconds * estimate.phases;
}

// What several threads save grows with the work, what it takes to wake and join them does not.
double serial_share(const Estimate& estimate, const machine::Machine& machine, int threads) {
  if (threads <= 1) return 0;
  const double price = fork_join_microseconds(estimate, machine);
  const double gain = estimate.alone.total - (estimate.together.total - price);
  return gain <= 0 ? 1e9 : price / gain;
}

}  // namespace fusewise::cost
