#include "machine/machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>

#include "base/cpu_limits.h"
#include "base/error.h"

namespace fusewise::machine {

namespace {

// Register tiles measured to run without spills, best first.
const std::vector<RegisterTile> tiles_of_512 = {{8, 3}, {6, 4}, {14, 2}, {12, 2}, {9, 3}};
const std::vector<RegisterTile> tiles_of_256 = {{6, 2}, {4, 3}};
const std::vector<RegisterTile> tiles_of_neon = {{8, 3}, {6, 4}, {12, 2}};

Machine level_3() {
  Machine m;
  m.name = m.cpu = "x86-64-v3";
  m.architecture = "x86-64";
  m.contraction_tiles = tiles_of_256;
  return m;
}

Machine level_4() {
  Machine m = level_3();
  m.name = m.cpu = "x86-64-v4";
  m.vector_bits = 512;
  m.vector_registers = 32;
  m.l1_bytes = 48 << 10;
  m.l2_bytes = 1 << 20;
  m.l1_bandwidth = 128;
  m.l2_bandwidth = 48;
  m.contraction_tiles = tiles_of_512;
  return m;
}

// Any 64-bit Arm processor: its vector unit is a part of the architecture.
Machine aarch64() {
  Machine m;
  m.name = m.cpu = m.architecture = "aarch64";
  m.vector_bits = 128;
  m.vector_registers = 32;
  m.l1_bytes = 64 << 10;
  m.l2_bytes = 1 << 20;
  m.contraction_tiles = tiles_of_neon;
  return m;
}

bool host_has_512() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

void detect_caches(Machine& m) {
  const auto set = [](int64_t& bytes, int name) {
    if (const long found = sysconf(name); found > 0) bytes = found;
  };
  set(m.l1_bytes, _SC_LEVEL1_DCACHE_SIZE);
  set(m.l2_bytes, _SC_LEVEL2_CACHE_SIZE);
  set(m.l3_bytes, _SC_LEVEL3_CACHE_SIZE);
  m.cores = default_thread_count();
  m.origin = Origin::detected;
}

// The figures of the text form, by name.
template <class F>
void each_figure(Machine& m, F&& f) {
  f("vector_bits", m.vector_bits);
  f("vector_registers", m.vector_registers);
  f("fma_units", m.fma_units);
  f("gigahertz", m.gigahertz);
  f("cores", m.cores);
  f("l1_bytes", m.l1_bytes);
  f("l2_bytes", m.l2_bytes);
  f("l3_bytes", m.l3_bytes);
  f("l1_bandwidth", m.l1_bandwidth);
  f("l2_bandwidth", m.l2_bandwidth);
  f("l3_bandwidth", m.l3_bandwidth);
  f("memory_bandwidth", m.memory_bandwidth);
  f("dispatch_microseconds", m.dispatch_microseconds);
  f("fork_join_microseconds", m.fork_join_microseconds);
  f("most_threads", m.most_threads);
  f("shared_bytes", m.shared_bytes);
  f("thread_registers", m.thread_registers);
}

}  // namespace

Machine machine_named(const std::string& cpu) { return cpu == "aarch64" ? aarch64() : host_machine(cpu); }

Machine host_machine(const std::string& cpu) {
  Machine m;
  if (cpu == "x86-64-v3")
    m = level_3();
  else if (cpu == "x86-64-v4")
    m = level_4();
  else if (cpu == "native")
    m = host_has_512() ? level_4() : level_3();
  else
    throw UserError(fmt::format("unknown CPU '{}': native, aarch64, x86-64-v3 and x86-64-v4 are known", cpu));
  if (cpu == "native") m.cpu = "native";
  detect_caches(m);
  return m;
}

Machine plain_gpu() {
  Machine m;
  m.name = "plain GPU";
  m.architecture = "gpu";
  m.cpu = "";
  m.vector_bits = 32;
  m.most_threads = 256;
  m.shared_bytes = 32 << 10;
  m.thread_registers = 64;
  m.cores = 16;
  m.dispatch_microseconds = 5;
  m.fork_join_microseconds = 0;
  return m;
}

std::string to_text(const Machine& machine) {
  Machine m = machine;
  std::string text = fmt::format("name = {}\narchitecture = {}\ncpu = {}\n", m.name, m.architecture, m.cpu);
  each_figure(m, [&](const char* name, const auto& value) { text += fmt::format("{} = {}\n", name, value); });
  for (const RegisterTile& t : m.contraction_tiles)
    text += fmt::format("contraction_tile = {} x {}\n", t.rows, t.vectors);
  return text;
}

Machine machine_from_text(const std::string& text) {
  Machine m;
  int line_number = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    ++line_number;
    if (line.empty() || line[0] == '#') continue;
    const size_t equals = line.find(" = ");
    if (equals == std::string::npos)
      throw UserError(fmt::format("machine description, line {}: expected 'name = value'", line_number));
    const std::string key = line.substr(0, equals), value = line.substr(equals + 3);
    bool known = true;
    if (key == "name")
      m.name = value;
    else if (key == "architecture")
      m.architecture = value;
    else if (key == "cpu")
      m.cpu = value;
    else if (key == "contraction_tile") {
      RegisterTile tile;
      if (std::sscanf(value.c_str(), "%d x %d", &tile.rows, &tile.vectors) != 2)
        throw UserError(fmt::format("machine description, line {}: expected 'rows x vectors'", line_number));
      m.contraction_tiles.push_back(tile);
    } else {
      known = false;
      each_figure(m, [&](const char* name, auto& figure) {
        if (key != name) return;
        known = true;
        char* rest = nullptr;
        const double number = std::strtod(value.c_str(), &rest);
        if (rest == value.c_str() || *rest != '\0' || number < 0)
          throw UserError(fmt::format("machine description, line {}: '{}' is no number", line_number, value));
        figure = static_cast<std::decay_t<decltype(figure)>>(number);
      });
    }
    if (!known)
      throw UserError(fmt::format("machine description, line {}: unknown figure '{}'", line_number, key));
  }
  return m;
}

}  // namespace fusewise::machine
