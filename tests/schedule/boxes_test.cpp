// Boxes of elements against sets of them: chains of windows, borders and joins as regions have them, at random sizes.
#include "schedule/lower/boxes.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>

#include "kernel/interpreter.h"

namespace fusewise::schedule {
namespace {

using kernel::ExprId;

int64_t random_between(std::mt19937& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

// A box in the kernel's words, and the elements that it must hold.
struct Needed {
  BoxDim box;
  std::set<int64_t> elements;
  int64_t size = 0;  // of the domain
  Extent domain;
};

class RandomBoxes {
 public:
  explicit RandomBoxes(unsigned seed) : random_(seed) {
    kernel_.name = "boxes";
    for (int i = 0; i < 12; ++i) {
      kernel_.parameters.push_back("p" + std::to_string(i));
      values_.push_back(random_between(random_, 0, 9));
    }
    out_ = builder_.buffer({.name = "out", .element = DataType::int64, .written = true});
  }

  // Where the chain begins: a tile that lies within its value.
  Needed tile() {
    Needed tile;
    const int64_t low = random_between(random_, 0, 5), extent = random_between(random_, 0, 4);
    tile.size = low + extent + random_between(random_, 0, 3);
    tile.domain = domain_of(tile.size);
    tile.box = {term(low), extent_of(extent), true};
    for (int64_t i = low; i < low + extent; ++i) tile.elements.insert(i);
    return tile;
  }

  // What one or several reads of `reader` need of a value: shifted, with a stride, cut where the value ends.
  Needed producer_of(const Needed& reader) {
    Needed result;
    result.size = random_between(random_, 0, 9);
    result.domain = domain_of(result.size);
    for (int64_t reads = random_between(random_, 1, 3), r = 0; r < reads; ++r) {
      const int64_t shift = random_between(random_, -7, 4),
                    stride = random_between(random_, 0, 5) == 0 ? 2 : 1;
      BoxDim image;
      image.low =
          builder_.add(builder_.mul(reader.box.low, builder_.integer(stride)), builder_.integer(shift));
      image.extent = stride == 1 ? reader.box.extent : swept_extent(builder_, {{reader.box.extent, stride}});
      for (const int64_t i : reader.elements)
        if (const int64_t at = i * stride + shift; at >= 0 && at < result.size) result.elements.insert(at);
      // A part that a border has cut.
      if (random_() % 2 == 0) image = clamp_to(builder_, image, result.domain.value);
      result.box = r == 0 ? image : hull(builder_, result.box, image, result.domain);
    }
    return result;
  }

  Needed cut(Needed needed) {
    needed.box = clamp_to(builder_, needed.box, needed.domain.value);
    return needed;
  }

  // Empty if the box holds what it must, lies within its value and keeps its bounds.
  std::string judge(const Needed& needed) {
    const BoxDim& box = needed.box;
    const ExprId bound = box.extent.bound_value == kernel::none ? box.extent.value : box.extent.bound_value;
    std::vector<kernel::StmtId> stores;
    for (const ExprId value : {box.low, box.extent.value, bound})
      stores.push_back(builder_.store(out_, builder_.integer(static_cast<int64_t>(stores.size())), value));
    kernel_.phases = {whole_run(builder_.block(stores))};
    std::array<int64_t, results> found{};
    const kernel::BufferArgument argument{found.data(), results};
    kernel::interpret(kernel_, {&argument, 1}, values_);
    const auto [low, extent, most] = found;
    const std::string words = testing::PrintToString(found) + " of " + std::to_string(needed.size) + " for " +
                              testing::PrintToString(needed.elements);
    if (extent < 0) return "a negative extent: " + words;
    if (extent > 0 && (low < 0 || low + extent > needed.size)) return "outside of the value: " + words;
    if (extent > most || (box.extent.bound && extent > *box.extent.bound)) return "over its bound: " + words;
    if (box.extent.exact && extent != *box.extent.exact) return "not the extent it claims: " + words;
    for (const int64_t i : needed.elements)
      if (i < low || i >= low + extent) return "without an element: " + words;
    return {};
  }

 private:
  static constexpr int64_t results = 3;
  std::mt19937 random_;
  kernel::Kernel kernel_;
  kernel::Builder builder_{kernel_};
  kernel::BufferId out_;
  std::vector<int64_t> values_;

  // `value` as a constant, or as what is known at run time only.
  ExprId term(int64_t value) {
    if (random_() % 3 == 0) return builder_.integer(value);
    const auto at = random_() % values_.size();
    return builder_.add(builder_.parameter(static_cast<int>(at)), builder_.integer(value - values_[at]));
  }

  Extent extent_of(int64_t value) {
    if (random_() % 3 == 0) return exact_extent(builder_, value);
    const int64_t bound = value + random_between(random_, 0, 2);
    return schedule::extent_of(builder_, term(value), bound, kernel::none, 1);
  }

  Extent domain_of(int64_t size) {
    if (random_() % 3 == 0) return exact_extent(builder_, size);
    Extent e;
    e.value = e.bound_value = term(size);
    return e;
  }

  kernel::StmtId whole_run(kernel::StmtId body) {
    const kernel::VariableId block = builder_.variable("b", {DataType::int64, 1});
    return builder_.loop(kernel::LoopKind::block, block, builder_.integer(0), builder_.integer(1), 1, body);
  }
};

TEST(Boxes, HoldWhatTheirReadersNeedAtAnySize) {
  for (unsigned seed = 1; seed <= 20000; ++seed) {
    RandomBoxes boxes(seed);
    Needed needed = boxes.tile();
    for (unsigned depth = 0; depth < 1 + seed % 3; ++depth) {
      needed = boxes.producer_of(needed);
      if (seed % 2 == 0) needed = boxes.cut(needed);
    }
    const std::string wrong = boxes.judge(boxes.cut(needed));
    ASSERT_EQ(wrong, "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace fusewise::schedule
