#include <algorithm>
#include <array>

#include "hostops/implementation.h"

namespace fusewise::hostops {

namespace {

struct Box {
  float low_y, low_x, high_y, high_x;
  float area() const { return (high_y - low_y) * (high_x - low_x); }
};

Box box_of(const std::byte* memory, DataType type, bool centred) {
  std::array<float, 4> v;
  const int bytes = bytes_of(type);
  for (size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<float>(load_scalar(memory + static_cast<int64_t>(i) * bytes, type).f);
  if (centred) {
    const float half_width = v[2] / 2, half_height = v[3] / 2;
    return {v[1] - half_height, v[0] - half_width, v[1] + half_height, v[0] + half_width};
  }
  return {std::min(v[0], v[2]), std::min(v[1], v[3]), std::max(v[0], v[2]), std::max(v[1], v[3])};
}

// Whether they share more than this part of what they cover together. Boxes without an area overlap nothing.
bool overlap(const Box& a, const Box& b, float threshold) {
  const float height = std::min(a.high_y, b.high_y) - std::max(a.low_y, b.low_y);
  const float width = std::min(a.high_x, b.high_x) - std::max(a.low_x, b.low_x);
  const float shared = std::max(height, 0.0F) * std::max(width, 0.0F);
  const float area_a = a.area(), area_b = b.area();
  if (shared <= 0 || area_a <= 0 || area_b <= 0) return false;
  const float together = area_a + area_b - shared;
  return together > 0 && shared / together > threshold;
}

struct Scored {
  float score;
  int64_t box;
  bool operator<(const Scored& other) const {  // what comes first
    if (less(other.score, score)) return true;
    return !less(score, other.score) && box < other.box;
  }
};

class Suppression {
 public:
  explicit Suppression(const Call& call)
      : call_(call),
        boxes_(call.operands[0]),
        scores_(call.operands[1]),
        count_(boxes_.shape[1]),
        classes_(scores_.shape[1]),
        centred_(call.parameters[0] != 0),
        has_threshold_(call.parameters[1] != 0),
        most_(std::max<int64_t>(number(2).i, 0)),
        overlap_threshold_(static_cast<float>(number(3).f)),
        score_threshold_(static_cast<float>(number(4).f)) {
    if (!(overlap_threshold_ >= 0 && overlap_threshold_ <= 1))
      throw UserError("the threshold of the overlap is not between 0 and 1");
  }

  void run() {
    const int64_t batches = boxes_.shape[0], lists = batches * classes_;
    most_ = std::min(most_, count_);
    const auto box = call_.scratch.take<Box>(count_);
    const auto candidates = call_.scratch.take<Scored>(count_);
    const auto chosen = call_.scratch.take<int64_t>(lists * most_),
               sizes = call_.scratch.take<int64_t>(lists);
    int64_t total = 0;
    for (int64_t b = 0; b < batches; ++b) {
      const int bytes = bytes_of(boxes_.type);
      for (int64_t i = 0; i < count_ && most_ > 0; ++i)
        box[static_cast<size_t>(i)] =
            box_of(boxes_.data + (b * count_ + i) * 4 * bytes, boxes_.type, centred_);
      for (int64_t c = 0; c < classes_; ++c) {
        const int64_t list = b * classes_ + c;
        const int64_t size = choose(list, box, candidates, chosen.data() + list * most_);
        sizes[static_cast<size_t>(list)] = size;
        total += size;
      }
    }
    call_.receiver.bind(std::array{total});
    int64_t* to = result<int64_t>(call_, 0);
    for (int64_t list = 0; list < lists; ++list)
      for (int64_t i = 0; i < sizes[static_cast<size_t>(list)]; ++i) {
        *to++ = list / classes_;
        *to++ = list % classes_;
        *to++ = chosen[static_cast<size_t>(list * most_ + i)];
      }
  }

 private:
  Scalar number(size_t operand) const {
    return load_scalar(call_.operands[operand].data, call_.operands[operand].type);
  }

  int64_t choose(int64_t list, std::span<const Box> box, std::span<Scored> candidates,
                 int64_t* chosen) const {
    if (most_ == 0) return 0;
    const int bytes = bytes_of(scores_.type);
    size_t found = 0;
    for (int64_t i = 0; i < count_; ++i) {
      const float score =
          static_cast<float>(load_scalar(scores_.data + (list * count_ + i) * bytes, scores_.type).f);
      if (has_threshold_ && !(score > score_threshold_)) continue;
      candidates[found++] = {score, i};
    }
    std::sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(found));
    int64_t size = 0;
    for (size_t k = 0; k < found && size < most_; ++k) {
      const int64_t i = candidates[k].box;
      bool free = true;
      for (int64_t j = 0; j < size && free; ++j)
        free = !overlap(box[static_cast<size_t>(i)], box[static_cast<size_t>(chosen[j])], overlap_threshold_);
      if (free) chosen[size++] = i;
    }
    return size;
  }

  const Call& call_;
  const Operand &boxes_, &scores_;
  int64_t count_, classes_;
  bool centred_, has_threshold_;
  int64_t most_;
  float overlap_threshold_, score_threshold_;
};

}  // namespace

void non_max_suppression(const Call& call) {
  check(call.parameters.size() == 2, "non_max_suppression with other parameters");
  Suppression(call).run();
}

}  // namespace fusewise::hostops
