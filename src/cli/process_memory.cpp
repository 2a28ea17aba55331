#include "cli/process_memory.h"

#include <cstdlib>
#include <fstream>
#include <string>

namespace fusewise::cli {

MemoryUse memory_use() {
  MemoryUse use;
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    const auto kilobytes = [&] { return std::atoll(line.c_str() + line.find(':') + 1) * 1024; };
    if (line.starts_with("VmRSS:")) use.resident = kilobytes();
    if (line.starts_with("VmHWM:")) use.peak = kilobytes();
  }
  return use;
}

}  // namespace fusewise::cli
