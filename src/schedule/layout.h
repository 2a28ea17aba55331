// The physical layout of a value: which dimension runs fastest, which are cut into blocks, and whether the value is a
// part of a larger array. A property of an edge in the plan; the graph knows nothing of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "numerics/dim.h"

namespace fusewise::schedule {

// Physical dimensions from outermost to innermost: first `order` (a permutation of the value's dimensions), each
// with index / block for a blocked dimension, then one dimension of size `block` per entry of `blocks`, with
// index % block. Weights [K, N] packed in panels of 48 columns are order {1, 0}, blocks {{1, 48}}:
// [N / 48][K][48]. A blocked dimension is padded to a multiple of its block.
struct Layout {
  struct Block {
    int dim = 0;
    int64_t block = 1;
    friend bool operator==(const Block&, const Block&) = default;
  };
  std::vector<int> order;
  std::vector<Block> blocks;
  // Of a value that lies inside of a larger array, by dimension: the elements from one index to the next, none of them
  // below 0. Addresses count from the value's first element, and `order` is that of falling strides. Empty: the value
  // is an array of its own. Never with blocks.
  std::vector<Dim> strides = {};

  bool is_row_major() const;
  int innermost() const;  // the dimension that is contiguous, -1 if there is none
  // "row" for row-major, else "0.2.3.1" or "1.0|1:48"; says nothing of the array around it.
  std::string to_string() const;
  static Layout parse(std::string_view text, int rank);
  friend bool operator==(const Layout&, const Layout&) = default;
};

Layout row_major(int rank);
// By dimension, of a value without blocks: elements from one index to the next.
std::vector<Dim> strides_of(const Layout& layout, const Shape& shape);
// The layout of a value of that shape with those strides: an array of its own where nothing lies in between. Of
// dimensions with equal strides the one that comes first in `order` is the outer one.
Layout with_strides(std::vector<int> order, std::vector<Dim> strides, const Shape& shape);
// Elements in memory from the first to the last, padding of blocked dimensions included.
Dim physical_elements(const Layout& layout, const Shape& shape);

}  // namespace fusewise::schedule
