#include "base/cpu_limits.h"

#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>

namespace fusewise {

namespace {

using std::filesystem::path;

std::string read_text(const path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return stream ? text.str() : std::string();
}

std::optional<int64_t> read_integer(const path& file) {
  std::istringstream stream(read_text(file));
  int64_t value = 0;
  if (!(stream >> value)) return std::nullopt;
  return value;
}

int count_cores(const std::vector<int>& cpus, const path& root) {
  std::set<std::string> cores;
  for (int cpu : cpus) {
    const path topology = root / fmt::format("sys/devices/system/cpu/cpu{}/topology", cpu);
    std::string siblings = read_text(topology / "thread_siblings_list");
    // Without topology files each processor counts as a core.
    if (siblings.empty()) siblings = fmt::format("cpu{}", cpu);
    cores.insert(std::move(siblings));
  }
  return std::max(1, static_cast<int>(cores.size()));
}

// Version 2 states "QUOTA PERIOD" or "max PERIOD" in one file, version 1 two numbers in two files.
std::optional<double> group_quota(const path& group) {
  std::istringstream stream(read_text(group / "cpu.max"));
  double quota = 0;
  double period = 0;
  if (stream >> quota >> period && period > 0) return quota / period;
  const auto old_quota = read_integer(group / "cpu.cfs_quota_us");
  const auto old_period = read_integer(group / "cpu.cfs_period_us");
  if (!old_quota || !old_period || *old_quota <= 0 || *old_period <= 0) return std::nullopt;
  return static_cast<double>(*old_quota) / static_cast<double>(*old_period);
}

// The tightest quota of a group and of the groups around it, up to where the hierarchy is mounted.
std::optional<double> tightest_quota(const path& mount, const path& group) {
  std::optional<double> tightest;
  path folder = mount;
  const auto visit = [&] {
    const auto quota = group_quota(folder);
    if (quota && (!tightest || *quota < *tightest)) tightest = quota;
  };
  visit();
  for (const path& part : group.relative_path()) {
    folder /= part;
    visit();
  }
  return tightest;
}

bool lists_cpu(const std::string& controllers) {
  return ("," + controllers + ",").find(",cpu,") != std::string::npos;
}

// Lines "ID:CONTROLLERS:PATH"; the line of version 2 has no controllers.
std::optional<double> read_quota(const path& root) {
  std::istringstream lines(read_text(root / "proc/self/cgroup"));
  std::optional<double> tightest;
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const path group = line.substr(second + 1);
    if (!controllers.empty() && !lists_cpu(controllers)) continue;
    const path mounts = root / "sys/fs/cgroup";
    for (const path& mount : {mounts / controllers, mounts / (controllers.empty() ? "unified" : "cpu")}) {
      const auto quota = tightest_quota(mount, group);
      if (quota && (!tightest || *quota < *tightest)) tightest = quota;
    }
  }
  return tightest;
}

}  // namespace

std::vector<int> allowed_cpus() {
  // The kernel refuses a mask that is smaller than its own; grow until it fits.
  for (int capacity = 1024; capacity <= (1 << 20); capacity *= 2) {
    cpu_set_t* mask = CPU_ALLOC(static_cast<size_t>(capacity));
    if (!mask) break;
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(capacity));
    CPU_ZERO_S(bytes, mask);
    const bool known = sched_getaffinity(0, bytes, mask) == 0;
    std::vector<int> cpus;
    for (int cpu = 0; known && cpu < capacity; ++cpu) {
      if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes, mask)) cpus.push_back(cpu);
    }
    CPU_FREE(mask);
    if (known && !cpus.empty()) return cpus;
  }
  return {0};
}

CpuLimits read_cpu_limits(const std::vector<int>& cpus, const path& root) {
  CpuLimits limits;
  limits.logical_cpus = std::max(1, static_cast<int>(cpus.size()));
  limits.physical_cores = count_cores(cpus, root);
  limits.quota = read_quota(root);
  return limits;
}

int thread_count_for(const CpuLimits& limits) {
  int count = limits.physical_cores;
  if (limits.quota && *limits.quota < count) count = static_cast<int>(std::floor(*limits.quota));
  return std::max(1, count);
}

int default_thread_count() { return thread_count_for(read_cpu_limits(allowed_cpus())); }

}  // namespace fusewise
