// A pool whose workers spin for a short while after each job and then sleep, so that a dispatch between
// neighbouring kernels costs well under a microsecond and an idle process costs nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "base/cpu_limits.h"
#include "base/function_ref.h"

namespace fusewise {

class ThreadPool {
 public:
  // Called with a range of items and the number of the worker that runs it, 0 <= worker < size(). Calls
  // that run at the same time for the same parallel_for have different workers.
  using Body = FunctionRef<void(int64_t begin, int64_t end, int worker)>;

  // `threads` includes the calling thread, which is worker 0: a pool of 1 starts no thread.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(threads_.size()) + 1; }

  // Runs `body` over [0, count) in pieces of `grain` items and returns when all is done. Each worker begins with a
  // share of its own, the same for equal counts, so that it finds in its caches what it wrote in the job before;
  // who is done early takes from the shares of the others. A single piece, a call from inside a body of this pool (with the worker
  // number of that body), and a call while another thread uses the pool run on the calling thread alone,
  // possibly as one range. Waking workers that sleep takes long: they are left asleep until what they would have
  // `saved`, in microseconds, adds up to that. When a body throws, no further piece starts, and the first exception is
  // rethrown after every worker has stopped. Bodies run in the default floating-point environment.
  void parallel_for(int64_t count, Body body, int64_t grain = 1,
                    double saved = std::numeric_limits<double>::infinity());

 private:
  struct Job {
    const Body* body = nullptr;
    int64_t count = 0;
    int64_t grain = 1;
    int64_t pieces = 0;
    int workers = 1;
  };
  // The pieces of one worker's share that are not taken yet: [next, end).
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  void work(int worker);
  void run_pieces(int worker) noexcept;
  void share_out();
  bool is_worth_waking(double saved);
  void announce(bool wake);
  void close_and_wait();
  void stop_threads();

  // The lines that different threads write are kept apart.
  alignas(64) std::atomic<uint32_t> epoch_{0};  // changes with every job, and once to stop
  std::atomic<uint32_t> sleepers_{0};
  std::atomic<bool> stop_{false};
  Job job_;
  alignas(64) std::atomic<uint32_t> gate_{0};  // flags and the number of workers inside (thread_pool.cpp)
  std::unique_ptr<Share[]> shares_;            // one per worker
  alignas(64) std::atomic<bool> in_use_{false};
  double missed_microseconds_ = 0;  // by jobs since workers were woken; of who uses the pool
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;  // written by whoever set failed_
  std::vector<std::thread> threads_;
};

}  // namespace fusewise
