// A job is handed over through a gate: a word with a flag "open" and the number of workers inside. A worker
// that finds the gate open takes pieces, of its own share first, until none is left; one that comes late finds it closed and has
// nothing to do. The caller closes the gate when the pieces have run out and waits only for those inside:
// a worker that is still asleep, or has lost its processor, delays nobody.
#include "base/thread_pool.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <utility>

#include "base/error.h"
#include "base/float_environment.h"

namespace fusewise {

namespace {

constexpr uint32_t gate_open = 1U << 31;
constexpr uint32_t gate_caller_sleeps = 1U << 30;
constexpr uint32_t gate_count = gate_caller_sleeps - 1;

constexpr std::chrono::microseconds spin_time{20};
constexpr int pauses_between_clock_reads = 32;
// Measured: a wake takes the caller 25 microseconds in the system, and as long passes until the other is there.
constexpr double wake_microseconds = 50;

// Which bodies of which pools the current thread is inside, innermost first.
struct Frame {
  const ThreadPool* pool;
  int worker;
  const Frame* outer;
};
thread_local const Frame* innermost_frame = nullptr;

class FrameScope {
 public:
  FrameScope(const ThreadPool* pool, int worker) : frame_{pool, worker, innermost_frame} {
    innermost_frame = &frame_;
  }
  ~FrameScope() { innermost_frame = frame_.outer; }
  FrameScope(const FrameScope&) = delete;
  FrameScope& operator=(const FrameScope&) = delete;

 private:
  Frame frame_;
};

const Frame* frame_of(const ThreadPool* pool) {
  const Frame* frame = innermost_frame;
  while (frame && frame->pool != pool) frame = frame->outer;
  return frame;
}

void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#else
  asm volatile("yield");
#endif
}

// Returns whether `done` became true within the spin time. The clock is left alone at first: a dispatch is
// short enough for reading it to show.
template <class Predicate>
bool spin_until(Predicate done) {
  std::chrono::steady_clock::time_point deadline;
  for (bool first = true;; first = false) {
    for (int i = 0; i < pauses_between_clock_reads; ++i) {
      if (done()) return true;
      pause_briefly();
    }
    const auto now = std::chrono::steady_clock::now();
    if (first) deadline = now + spin_time;
    if (now >= deadline) return done();
  }
}

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t), "a futex is a plain 32-bit word");

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
  // An early return is harmless: every caller looks at the word again.
  ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word, int count) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  check(threads >= 1, "a thread pool needs at least one thread");
  shares_ = std::make_unique<Share[]>(static_cast<size_t>(threads));
  threads_.reserve(static_cast<size_t>(threads) - 1);
  try {
    for (int worker = 1; worker < threads; ++worker) threads_.emplace_back([this, worker] { work(worker); });
  } catch (...) {
    stop_threads();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop_threads(); }

void ThreadPool::stop_threads() {
  stop_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1);
  futex_wake(epoch_, INT_MAX);
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::work(int worker) {
  const DefaultFloatEnvironment environment;
  uint32_t seen = 0;
  for (;;) {
    const auto changed = [&] { return epoch_.load(std::memory_order_acquire) != seen; };
    if (!spin_until(changed)) {
      // Sequentially consistent with announce(): either it sees the sleeper, or this sees the new epoch.
      sleepers_.fetch_add(1);
      while (epoch_.load() == seen) futex_wait(epoch_, seen);
      sleepers_.fetch_sub(1);
    }
    seen = epoch_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    const uint32_t before = gate_.fetch_add(1, std::memory_order_acq_rel);
    if (before & gate_open) run_pieces(worker);
    const uint32_t after = gate_.fetch_sub(1, std::memory_order_acq_rel) - 1;
    if ((after & gate_caller_sleeps) && (after & gate_count) == 0) futex_wake(gate_, 1);
  }
}

void ThreadPool::run_pieces(int worker) noexcept {
  const FrameScope scope(this, worker);
  const Job job = job_;
  const int workers = job.workers;
  try {
    for (int turn = 0; turn < workers; ++turn) {
      const int owner = worker + turn < workers ? worker + turn : worker + turn - workers;
      Share& share = shares_[static_cast<size_t>(owner)];
      for (;;) {
        const int64_t piece = share.next.fetch_add(1, std::memory_order_relaxed);
        if (piece >= share.end) break;
        const int64_t begin = piece * job.grain;
        const int64_t end = job.count - begin > job.grain ? begin + job.grain : job.count;
        (*job.body)(begin, end, worker);
      }
    }
  } catch (...) {
    for (int owner = 0; owner < workers; ++owner) {
      Share& share = shares_[static_cast<size_t>(owner)];
      share.next.store(share.end, std::memory_order_relaxed);
    }
    if (!failed_.exchange(true)) failure_ = std::current_exception();
  }
}

// Equal shares; the first ones have a piece more.
void ThreadPool::share_out() {
  const int64_t each = job_.pieces / job_.workers, more = job_.pieces % job_.workers;
  int64_t begin = 0;
  for (int64_t worker = 0; worker < job_.workers; ++worker) {
    Share& share = shares_[static_cast<size_t>(worker)];
    share.next.store(begin, std::memory_order_relaxed);
    begin += each + (worker < more ? 1 : 0);
    share.end = begin;
  }
}

bool ThreadPool::is_worth_waking(double saved) {
  if (sleepers_.load() == 0) return true;
  missed_microseconds_ += saved;
  if (missed_microseconds_ < wake_microseconds) return false;
  missed_microseconds_ = 0;
  return true;
}

void ThreadPool::announce(bool wake) {
  gate_.fetch_or(gate_open, std::memory_order_release);
  epoch_.fetch_add(1);
  if (!wake || sleepers_.load() == 0) return;
  futex_wake(epoch_, static_cast<int>(std::min<int64_t>(job_.pieces - 1, INT_MAX)));
}

void ThreadPool::close_and_wait() {
  gate_.fetch_and(~gate_open, std::memory_order_acq_rel);
  const auto empty = [&] { return (gate_.load(std::memory_order_acquire) & gate_count) == 0; };
  if (spin_until(empty)) return;
  uint32_t gate = gate_.fetch_or(gate_caller_sleeps) | gate_caller_sleeps;
  while (gate & gate_count) {
    futex_wait(gate_, gate);
    gate = gate_.load(std::memory_order_acquire);
  }
  gate_.fetch_and(~gate_caller_sleeps);
}

void ThreadPool::parallel_for(int64_t count, Body body, int64_t grain, double saved) {
  check(grain >= 1, "the grain of a parallel loop is at least 1");
  if (count <= 0) return;
  const DefaultFloatEnvironment environment;
  const Frame* outer = frame_of(this);
  if (outer) return body(0, count, outer->worker);
  const auto run_alone = [&] {
    const FrameScope scope(this, 0);
    body(0, count, 0);
  };
  if (count <= grain || threads_.empty() || in_use_.exchange(true, std::memory_order_acquire))
    return run_alone();
  const bool wake = is_worth_waking(saved);
  if (!wake && sleepers_.load() == threads_.size()) {
    in_use_.store(false, std::memory_order_release);
    return run_alone();
  }
  job_ = {&body, count, grain, (count - 1) / grain + 1, size()};
  share_out();
  announce(wake);
  run_pieces(0);
  close_and_wait();
  std::exception_ptr failure;
  if (failed_.exchange(false)) failure = std::exchange(failure_, nullptr);
  in_use_.store(false, std::memory_order_release);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace fusewise
