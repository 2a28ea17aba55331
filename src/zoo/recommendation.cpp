// DLRM with the layers for the Criteo Kaggle data; its tables are cut to 100000 rows.
#include <algorithm>

#include "zoo/layers/layers.h"
#include "zoo/list.h"

namespace fusewise::zoo {

namespace {

constexpr int64_t most_rows = 100000;
constexpr int64_t categories[] = {1460,  583,  10131227, 2202608, 305, 24,     12517,   633,   3,
                                  93145, 5683, 8351593,  3194,    27,  14992,  5461306, 10,    5652,
                                  2173,  4,    7046547,  18,      15,  286181, 105,     142572};
constexpr int64_t tiny_categories[] = {3, 17, 101};

std::string multilayer(Layers& l, const std::string& name, std::string x,
                       const std::vector<int64_t>& widths) {
  for (size_t i = 1; i < widths.size(); ++i) {
    if (i > 1) x = l.relu(x);
    x = l.gemm(name + "." + std::to_string(2 * (i - 1)), x, widths[i - 1], widths[i], 2);
  }
  return x;
}

// The products of all pairs of vectors of [batch, count, width], each pair once.
std::string interactions(Layers& l, const std::string& vectors, int64_t count) {
  const std::string products = l.matmul(vectors, l.transpose(vectors, {0, 2, 1}));
  std::vector<int64_t> pairs;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < i; ++j) pairs.push_back(i * count + j);
  const auto number = static_cast<int64_t>(pairs.size());
  const std::string which = l.m.ints("pairs", {number}, std::move(pairs));
  return l.gather(l.reshape(products, {0, count * count}), which, 1);
}

}  // namespace

OnnxBuilder dlrm(bool tiny) {
  OnnxBuilder model;
  Layers l(model);
  const std::vector<int64_t> tables =
      tiny ? std::vector<int64_t>(std::begin(tiny_categories), std::end(tiny_categories))
           : std::vector<int64_t>(std::begin(categories), std::end(categories));
  const int64_t width = tiny ? 4 : 16, numbers = tiny ? 5 : 13;
  const OnnxDim batch = std::string("batch");
  model.input("dense", DataType::float32, {batch, numbers});
  const std::vector<int64_t> bottom =
      tiny ? std::vector<int64_t>{numbers, 16, width} : std::vector<int64_t>{numbers, 512, 256, 64, width};
  const std::string dense = l.relu(multilayer(l, "bot_l", "dense", bottom));
  std::vector<std::string> vectors{l.unsqueeze(dense, {1})};
  for (size_t i = 0; i < tables.size(); ++i) {
    const std::string number = std::to_string(i);
    // A bag of indices per table, whose rows are added.
    const std::string bag = model.input("sparse_" + number, DataType::int64, {batch, std::string("hot")});
    const std::string found = l.embedding("emb_l." + number, bag, std::min(tables[i], most_rows), width);
    vectors.push_back(model.node("ReduceSum", {found, l.integers({1})}, {{"keepdims", 1}}));
  }
  const auto count = static_cast<int64_t>(vectors.size());
  const std::string pairs = interactions(l, l.concat(vectors, 1), count);
  const int64_t features = width + count * (count - 1) / 2;
  const std::vector<int64_t> top =
      tiny ? std::vector<int64_t>{features, 16, 1} : std::vector<int64_t>{features, 512, 256, 1};
  const std::string score = multilayer(l, "top_l", l.concat({dense, pairs}, 1), top);
  model.node("Sigmoid", {score}, {}, "probability");
  model.output("probability", DataType::float32, {batch, int64_t{1}});
  return model;
}

}  // namespace fusewise::zoo
