#include "session/pinned_pool.h"

#include <fmt/format.h>
#include <sched.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <set>
#include <vector>

#include "base/cpu_limits.h"
#include "base/error.h"

namespace fusewise::session {

namespace {

// The threads of this process, by the system's ids.
std::set<pid_t> threads_of_process() {
  std::set<pid_t> ids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string name = entry.path().filename().string();
    pid_t id = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), id).ec == std::errc()) ids.insert(id);
  }
  return ids;
}

// 0 is the calling thread.
void pin(pid_t thread, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(cpu), &set);
  if (sched_setaffinity(thread, sizeof set, &set) != 0)
    throw UserError(fmt::format("cannot pin a thread to processor {}: {}", cpu, std::strerror(errno)),
                    {.hint = "leave --pin out"});
}

}  // namespace

std::shared_ptr<ThreadPool> pinned_pool(int threads) {
  const std::vector<int> cpus = allowed_cpus();
  check(!cpus.empty(), "no processor to run on");
  const std::set<pid_t> before = threads_of_process();
  auto pool = std::make_shared<ThreadPool>(threads > 0 ? threads : default_thread_count());
  size_t next = 1;
  for (pid_t id : threads_of_process())
    if (!before.count(id)) pin(id, cpus[next++ % cpus.size()]);
  pin(0, cpus[0]);
  return pool;
}

}  // namespace fusewise::session
