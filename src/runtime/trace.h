// What each worker of a pool did when: pieces of steps, recorded while runs go on.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace fusewise::runtime {

struct TracePiece {
  uint32_t step = 0;   // of the program's run steps
  uint32_t phase = 0;  // of the step's kernel
  int64_t first_block = 0, end_block = 0;
  std::chrono::steady_clock::time_point begin, end;
};

// One list per worker, which that worker alone appends to.
struct Trace {
  explicit Trace(int workers) : pieces(static_cast<size_t>(workers)) {}
  std::vector<std::vector<TracePiece>> pieces;
};

// Does `work`, and records it where there is a trace.
template <class Work>
void traced(Trace* trace, int worker, TracePiece piece, Work&& work) {
  if (!trace) return work();
  piece.begin = std::chrono::steady_clock::now();
  work();
  piece.end = std::chrono::steady_clock::now();
  trace->pieces[static_cast<size_t>(worker)].push_back(piece);
}

}  // namespace fusewise::runtime
