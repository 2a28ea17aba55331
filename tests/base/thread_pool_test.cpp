#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "base/float_environment.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace fusewise {
namespace {

std::vector<int> visits(ThreadPool& pool, int64_t count, int64_t grain) {
  std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
  pool.parallel_for(
      count,
      [&](int64_t begin, int64_t end, int worker) {
        EXPECT_LT(begin, end);
        EXPECT_LE(end, count);
        EXPECT_GE(worker, 0);
        EXPECT_LT(worker, pool.size());
        for (int64_t i = begin; i < end; ++i) seen[static_cast<size_t>(i)].fetch_add(1);
      },
      grain);
  return {seen.begin(), seen.end()};
}

TEST(ThreadPool, VisitsEveryItemOnce) {
  for (int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.size(), threads);
    for (int64_t count : {0, 1, 2, 7, 64, 97, 1000}) {
      for (int64_t grain : {1, 2, 13, 1000, 5000}) {
        const std::vector<int> seen = visits(pool, count, grain);
        EXPECT_TRUE(std::ranges::all_of(seen, [](int n) { return n == 1; })) << count << " by " << grain;
      }
    }
  }
}

// Two pieces that wait for each other need both workers, and each worker begins with its own.
TEST(ThreadPool, WorkersBeginWithTheirOwnShare) {
  ThreadPool pool(2);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> inside{0};
    pool.parallel_for(6, [&](int64_t begin, int64_t, int worker) {
      if (begin % 3 == 0) {
        EXPECT_EQ(worker, begin / 3);
        ++inside;
        while (inside.load() < 2) std::this_thread::yield();
      }
    });
  }
}

// Whoever sleeps is woken only for what is worth it, or for much that is not. A pause of that length is longer than
// workers spin.
TEST(ThreadPool, SleepersAreWokenForWhatIsWorthIt) {
  ThreadPool pool(2);
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  const auto both = [&](double saved) {
    std::atomic<int> inside{0};
    pool.parallel_for(
        2,
        [&](int64_t begin, int64_t end, int) {
          inside += static_cast<int>(end - begin);
          while (inside.load() < 2) std::this_thread::yield();
        },
        1, saved);
  };
  const auto sum = [&](double saved, std::set<int>& workers) {
    std::atomic<int64_t> total{0};
    std::mutex mutex;
    pool.parallel_for(
        100,
        [&](int64_t begin, int64_t end, int worker) {
          for (int64_t i = begin; i < end; ++i) total += i;
          const std::lock_guard lock(mutex);
          workers.insert(worker);
        },
        1, saved);
    return total.load();
  };
  for (int round = 0; round < 3; ++round) {
    pause();
    std::set<int> workers;
    for (int i = 0; i < 10; ++i) EXPECT_EQ(sum(1, workers), 4950);
    EXPECT_EQ(workers, std::set<int>{0});
    both(1e6);
    pause();
    // What was not worth it adds up: the caller does not wait alone for ever.
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(sum(1, workers), 4950);
    both(std::numeric_limits<double>::infinity());
  }
}

TEST(ThreadPool, TakesHugeCountsAndGrains) {
  ThreadPool pool(3);
  std::atomic<int64_t> total{0};
  const int64_t count = INT64_MAX;
  const auto add = [&](int64_t begin, int64_t end, int) { total += end - begin; };
  pool.parallel_for(count, add, INT64_MAX / 3 + 1);
  EXPECT_EQ(total, count);
  total = 0;
  pool.parallel_for(count, add, INT64_MAX - 1);
  EXPECT_EQ(total, count);
}

TEST(ThreadPool, RefusesSenselessSettings) {
  EXPECT_THROW(ThreadPool(0), InternalError);
  ThreadPool pool(2);
  EXPECT_THROW(pool.parallel_for(3, [](int64_t, int64_t, int) {}, 0), InternalError);
  pool.parallel_for(-5, [](int64_t, int64_t, int) { FAIL() << "there is nothing to run"; });
}

TEST(ThreadPool, ManySmallJobsWithPausesBetween) {
  ThreadPool pool(4);
  int64_t expected = 0;
  std::atomic<int64_t> sum{0};
  for (int job = 0; job < 3000; ++job) {
    pool.parallel_for(7, [&](int64_t begin, int64_t, int) { sum += begin; });
    expected += 21;
    // Long enough for the workers to fall asleep now and then.
    if (job % 300 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  EXPECT_EQ(sum, expected);
}

TEST(ThreadPool, SleepingWorkersWakeAndHelp) {
  ThreadPool pool(2);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::atomic<int> inside{0};
  // Each piece waits for the other: one thread alone would not come to an end before the deadline.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  pool.parallel_for(2, [&](int64_t, int64_t, int) {
    ++inside;
    while (inside < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  });
  EXPECT_LT(std::chrono::steady_clock::now(), deadline);
}

TEST(ThreadPool, CallerSleepsWhileAWorkerIsBusy) {
  ThreadPool pool(2);
  std::atomic<int> finished{0};
  pool.parallel_for(2, [&](int64_t, int64_t, int worker) {
    if (worker == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (worker == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ++finished;
  });
  EXPECT_EQ(finished, 2);
}

TEST(ThreadPool, RethrowsAfterAllHaveStopped) {
  ThreadPool pool(3);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> inside{0};
    const auto body = [&](int64_t begin, int64_t, int) {
      ++inside;
      if (begin == 5) {
        --inside;
        throw std::runtime_error("piece five");
      }
      --inside;
    };
    try {
      pool.parallel_for(100, body);
      FAIL() << "the exception was lost";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "piece five");
    }
    EXPECT_EQ(inside, 0);
    // The pool is usable afterwards.
    EXPECT_EQ(visits(pool, 9, 1), std::vector<int>(9, 1));
  }
}

TEST(ThreadPool, OneOfManyExceptionsArrivesAndNoFurtherPieceStarts) {
  ThreadPool pool(2);
  std::atomic<int> started{0};
  const auto body = [&](int64_t, int64_t, int) {
    ++started;
    throw UserError("always");
  };
  EXPECT_THROW(pool.parallel_for(1000, body), UserError);
  EXPECT_LE(started, pool.size());
}

TEST(ThreadPool, NestedLoopsRunInlineWithTheSameWorker) {
  ThreadPool pool(3);
  std::atomic<int> total{0};
  pool.parallel_for(8, [&](int64_t, int64_t, int outer) {
    const std::thread::id thread = std::this_thread::get_id();
    pool.parallel_for(5, [&](int64_t begin, int64_t end, int inner) {
      EXPECT_EQ(inner, outer);
      EXPECT_EQ(std::this_thread::get_id(), thread);
      total += static_cast<int>(end - begin);
    });
  });
  EXPECT_EQ(total, 40);
}

TEST(ThreadPool, NestingThroughASecondPoolKeepsTheWorker) {
  ThreadPool first(2);
  ThreadPool second(2);
  std::atomic<int> total{0};
  first.parallel_for(6, [&](int64_t, int64_t, int) {
    second.parallel_for(
        3,
        [&](int64_t, int64_t, int) {
          first.parallel_for(
              2, [&](int64_t begin, int64_t end, int) { total += static_cast<int>(end - begin); });
        },
        1);
  });
  // A call of `second` that ran alone saw its three items as one range.
  EXPECT_GE(total, 12);
  EXPECT_LE(total, 36);
}

TEST(ThreadPool, SeveralThreadsMayCallAtOnce) {
  ThreadPool pool(3);
  std::atomic<int64_t> total{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int job = 0; job < 500; ++job) {
        pool.parallel_for(20, [&](int64_t begin, int64_t end, int) { total += end - begin; }, 3);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 4 * 500 * 20);
}

#if defined(__x86_64__)
TEST(ThreadPool, BodiesRunWithoutFlushToZero) {
  constexpr unsigned flush_and_denormals_are_zero = 0x8040;
  ThreadPool pool(3);
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | flush_and_denormals_are_zero);
  std::atomic<int> wrong{0};
  for (int64_t count : {1, 30}) {
    pool.parallel_for(count, [&](int64_t, int64_t, int) {
      volatile float least = 1.1754944e-38F;
      const float half = least * 0.5F;
      if (half == 0.0F || (_mm_getcsr() & flush_and_denormals_are_zero) != 0) ++wrong;
    });
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(_mm_getcsr() & flush_and_denormals_are_zero, flush_and_denormals_are_zero);
  _mm_setcsr(before);
}
#endif

TEST(ThreadPool, StartsAndStopsOften) {
  for (int round = 0; round < 100; ++round) {
    ThreadPool pool(1 + round % 4);
    if (round % 2 == 0) visits(pool, 5, 1);
  }
}

}  // namespace
}  // namespace fusewise
