// How many processors this process may really use: the affinity mask, the cores behind it (two hardware
// threads of a core count once), and the quota of its control groups.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

namespace fusewise {

struct CpuLimits {
  int logical_cpus = 1;         // in the affinity mask
  int physical_cores = 1;       // behind them
  std::optional<double> quota;  // processors' worth of time, nothing when unlimited
};

// The processors in the affinity mask of the calling thread.
std::vector<int> allowed_cpus();

// Reads the files of /proc and /sys below `root` (tests give a folder of their own). What cannot be read
// counts as no limit.
CpuLimits read_cpu_limits(const std::vector<int>& cpus, const std::filesystem::path& root = "/");

// Physical cores within mask and quota, at least 1. A quota of 1.5 gives 1: threads that spin beyond a
// quota stop the whole process for the rest of the period.
int thread_count_for(const CpuLimits& limits);
int default_thread_count();

}  // namespace fusewise
