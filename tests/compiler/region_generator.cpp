#include "region_generator.h"

#include <algorithm>

#include "support/random.h"

namespace fusewise::test {

namespace {

schedule::Layout random_layout(int dims, Random& random) {
  schedule::Layout layout = schedule::row_major(dims);
  if (random.chance(70)) random.shuffle(layout.order);
  if (random.chance(40)) {
    std::vector<int> blocked = layout.order;
    random.shuffle(blocked);
    blocked.resize(std::min<size_t>(blocked.size(), static_cast<size_t>(random.between(1, 2))));
    for (int d : blocked) layout.blocks.push_back({d, random.one_of<int64_t>({2, 3, 4, 8, 16, 16})});
  }
  return layout;
}

}  // namespace

RegionCase random_region(uint64_t seed) {
  Random random(~seed);
  GraphOptions options;
  options.most_operations = random.one_of<int64_t>({8, 8, 20});
  options.alone = false;  // regions have none
  options.control_depth = 0;
  RegionCase result{random_graph(seed, options), seed, {}};
  if (!random.chance(45)) return result;
  for (graph::NodeId n = 0; n < result.graph.size(); ++n) {
    const graph::Value v{n, 0};
    const int rank = result.graph.type(v).rank();
    if (rank == 0 || !random.chance(40)) continue;
    schedule::Layout layout = random_layout(rank, random);
    // A part of a larger array: its rows lie apart, and sometimes the elements of a row.
    if (layout.blocks.empty() && random.chance(40)) {
      const Shape& shape = result.graph.type(v).shape;
      std::vector<Dim> strides(shape.size());
      int64_t stride = random.one_of<int64_t>({1, 1, 2, 3});
      for (size_t i = layout.order.size(); i-- > 0;) {
        const auto d = static_cast<size_t>(layout.order[i]);
        strides[d] = stride;
        stride *= shape[d].evaluate(result.symbols) + random.between(0, 3);
      }
      layout = schedule::with_strides(layout.order, std::move(strides), shape);
    }
    if (!layout.is_row_major()) result.layouts[v] = layout;
  }
  return result;
}

}  // namespace fusewise::test
