// Convolution: x is brought to [N, spatial..., C], so that a kernel position reads a run of channels. The
// output positions of a row that have the same taps present share a block of rows of the contraction loops.
#include <algorithm>
#include <array>

#include "base/aligned_buffer.h"
#include "base/error.h"
#include "graph/interpreter/contract.h"
#include "graph/interpreter/contract_kernels.h"
#include "graph/interpreter/strided.h"

namespace fusewise::graph {

namespace {

// Shapes and attributes with at least one spatial dimension.
struct Geometry {
  std::vector<int64_t> extents, kernel, positions;  // of x, weights and result
  std::vector<int64_t> strides, dilations, pads;
  int64_t images, groups, in_channels, out_channels;  // channels of a group
  int64_t row_taps = 1;                               // kernel positions but for the last dimension
  int64_t taps() const { return row_taps * kernel.back(); }
};

Geometry geometry_of(const ConvolutionAttributes& a, const ConvolutionTerm& term,
                     std::span<const int64_t> result) {
  Geometry g{{term.x.shape.begin() + 2, term.x.shape.end()},
             {term.weights.shape.begin() + 2, term.weights.shape.end()},
             {result.begin() + 2, result.end()},
             a.strides,
             a.dilations,
             a.pad_low,
             result[0],
             a.groups,
             term.weights.shape[1],
             result[1] / a.groups};
  if (g.extents.empty()) {
    g.extents = g.kernel = g.positions = g.strides = g.dilations = {1};
    g.pads = {0};
  }
  if (term.x.shape[1] != g.in_channels * g.groups || g.out_channels * g.groups != term.weights.shape[0])
    throw UserError("the channels of a convolution disagree: " + to_string(term.x.shape) + " and " +
                    to_string(term.weights.shape));
  for (size_t d = 0; d + 1 < g.kernel.size(); ++d) g.row_taps *= g.kernel[d];
  return g;
}

// Channels last; x to [N, spatial, C].
Tensor channels_last(const Tensor& x) {
  std::vector<int> permutation{0};
  for (int d = 2; d < x.rank(); ++d) permutation.push_back(d);
  permutation.push_back(1);
  return transposed(x, permutation);
}

// A kernel position of the leading dimensions that is present for a row of outputs.
struct RowTap {
  int64_t tap;     // row-major among the leading kernel dimensions
  int64_t offset;  // of the row of x, in positions
};

std::vector<RowTap> row_taps(const Geometry& g, std::span<const int64_t> row) {
  std::vector<RowTap> result;
  const size_t leading = row.size();
  const std::vector<int64_t> strides = row_major_strides(g.extents);
  if (g.taps() == 0) return result;
  std::vector<int64_t> tap(leading, 0);
  int64_t number = 0;
  do {
    int64_t offset = 0;
    bool present = true;
    for (size_t d = 0; d < leading; ++d) {
      const int64_t at = row[d] * g.strides[d] - g.pads[d] + tap[d] * g.dilations[d];
      present = present && at >= 0 && at < g.extents[d];
      offset += at * strides[d];
    }
    if (present) result.push_back({number, offset});
    ++number;
  } while (next_index(std::span(g.kernel).first(leading), tap));
  return result;
}

// The taps [first, last) of the last dimension that are present for output position p.
struct TapRange {
  int64_t first, last;
  friend bool operator==(const TapRange&, const TapRange&) = default;
};

TapRange last_taps(const Geometry& g, int64_t p) {
  const int64_t start = p * g.strides.back() - g.pads.back(), dilation = g.dilations.back(),
                size = g.kernel.back();
  const auto below = [&](int64_t limit) {  // taps t with start + t * dilation < limit
    return std::clamp<int64_t>(limit <= start ? 0 : (limit - start + dilation - 1) / dilation, 0, size);
  };
  return {below(0), below(g.extents.back())};
}

template <class T>
class Convolution {
 public:
  static constexpr int64_t columns = ContractKernels<T>::columns;
  static constexpr int64_t most_rows = ContractKernels<T>::rows;

  Convolution(const Geometry& geometry, std::span<const ConvolutionTerm> terms) : g(geometry) {
    for (const ConvolutionTerm& term : terms) {
      x_.push_back(channels_last(term.x));
      if (depthwise()) {
        weights_.push_back(channels_last(term.weights.reshaped({1, g.groups, g.taps()})));
      } else {
        pack_weights(term.weights);
      }
    }
  }

  bool depthwise() const { return g.in_channels == 1 && g.out_channels == 1 && g.groups > 1; }
  int64_t rows_per_image() const {
    return element_count(g.positions) / std::max<int64_t>(1, g.positions.back());
  }

  // One row of output positions of one image, all channels, to [position, channel].
  void run_row(int64_t image, int64_t row, T* to) const {
    std::vector<int64_t> index(g.positions.size() - 1);
    for (size_t d = index.size(); d-- > 0; row /= g.positions[d]) index[d] = row % g.positions[d];
    const std::vector<RowTap> taps = row_taps(g, index);
    if (depthwise()) {
      for (int64_t p = 0; p < g.positions.back(); ++p) run_channels(image, taps, p, to + p * g.groups);
      return;
    }
    for (int64_t first = 0, last; first < g.positions.back(); first = last) {
      const TapRange range = last_taps(g, first);
      last = first + 1;
      while (last < g.positions.back() && last - first < most_rows && last_taps(g, last) == range) ++last;
      for (int64_t group = 0; group < g.groups; ++group)
        run_block(image, taps, range, group, first, last, to + first * g.groups * g.out_channels);
    }
  }

 private:
  const Geometry& g;
  std::vector<Tensor> x_;
  std::vector<Tensor> weights_;        // depthwise: [tap, channel]
  std::vector<AlignedBuffer> panels_;  // else, per term: [group, panel, tap, input channel, column]

  int64_t panels_per_group() const { return (g.out_channels + columns - 1) / columns; }
  int64_t panel_size() const { return g.taps() * g.in_channels * columns; }

  void pack_weights(const Tensor& weights) {
    AlignedBuffer buffer(static_cast<size_t>(g.groups * panels_per_group() * panel_size()) * sizeof(T));
    const T* from = weights.as<T>().data();
    T* to = buffer.as<T>().data();
    for (int64_t group = 0; group < g.groups; ++group) {
      for (int64_t first = 0; first < g.out_channels; first += columns) {
        for (int64_t tap = 0; tap < g.taps(); ++tap) {
          for (int64_t c = 0; c < g.in_channels; ++c) {
            for (int64_t j = 0; j < columns; ++j) {
              const int64_t channel = group * g.out_channels + first + j;
              *to++ =
                  first + j < g.out_channels ? from[(channel * g.in_channels + c) * g.taps() + tap] : T(0);
            }
          }
        }
      }
    }
    panels_.push_back(std::move(buffer));
  }

  // The channels that tap `t` of the last dimension reads for position p.
  const T* source(size_t term, int64_t image, const RowTap& tap, int64_t t, int64_t p) const {
    const int64_t column = p * g.strides.back() - g.pads.back() + t * g.dilations.back();
    const int64_t position = image * element_count(g.extents) + tap.offset + column;
    return x_[term].as<T>().data() + position * g.groups * g.in_channels;
  }

  void run_channels(int64_t image, const std::vector<RowTap>& taps, int64_t p, T* to) const {
    std::fill_n(to, g.groups, T(0));
    const TapRange range = last_taps(g, p);
    for (size_t term = 0; term < x_.size(); ++term) {
      for (const RowTap& tap : taps) {
        for (int64_t t = range.first; t < range.last; ++t) {
          const T* weights = weights_[term].as<T>().data() + (tap.tap * g.kernel.back() + t) * g.groups;
          contract_kernels<T>().multiply_add(source(term, image, tap, t, p), weights, to, g.groups);
        }
      }
    }
  }

  void run_block(int64_t image, const std::vector<RowTap>& taps, TapRange range, int64_t group, int64_t first,
                 int64_t last, T* to) const {
    const int64_t rows = last - first;
    std::vector<const T*> a, b;
    for (size_t term = 0; term < x_.size(); ++term) {
      for (const RowTap& tap : taps) {
        for (int64_t t = range.first; t < range.last; ++t) {
          for (int64_t p = first; p < last; ++p)
            a.push_back(source(term, image, tap, t, p) + group * g.in_channels);
          b.push_back(panels_[term].template as<T>().data() + group * panels_per_group() * panel_size() +
                      (tap.tap * g.kernel.back() + t) * g.in_channels * columns);
        }
      }
    }
    std::array<T, static_cast<size_t>(most_rows * columns)> block;
    for (int64_t channel = 0; channel < g.out_channels; channel += columns) {
      contract_kernels<T>().block[rows - 1](a.data(), b.data(), static_cast<int64_t>(b.size()), g.in_channels,
                                            block.data(), columns);
      for (int64_t u = 0; u < rows; ++u) {
        std::copy_n(block.data() + u * columns, std::min(columns, g.out_channels - channel),
                    to + u * g.groups * g.out_channels + group * g.out_channels + channel);
      }
      for (const T*& panel : b) panel += panel_size();
    }
  }
};

template <class T>
Tensor convolve_typed(const Geometry& g, std::span<const ConvolutionTerm> terms, ThreadPool* pool) {
  const Convolution<T> convolution(g, terms);
  std::vector<int64_t> shape{g.images};
  shape.insert(shape.end(), g.positions.begin(), g.positions.end());
  shape.push_back(g.groups * g.out_channels);
  Tensor result(terms[0].x.element, shape);
  T* to = result.mutable_as<T>().data();
  const int64_t rows = convolution.rows_per_image(), row_size = g.positions.back() * shape.back();
  run_in_pieces(pool, g.images * rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      convolution.run_row(row / rows, row % rows, to + row * row_size);
  });
  return result;
}

}  // namespace

Tensor convolve(const ConvolutionAttributes& attributes, std::span<const ConvolutionTerm> terms,
                std::span<const int64_t> result_shape, ThreadPool* pool) {
  const Geometry g = geometry_of(attributes, terms[0], result_shape);
  std::vector<int64_t> shape(result_shape.begin(), result_shape.end());
  if (element_count(shape) == 0) return Tensor(terms[0].x.element, shape);
  Tensor result;
  switch (terms[0].x.element) {
    case DataType::float32:
      result = convolve_typed<float>(g, terms, pool);
      break;
    case DataType::float64:
      result = convolve_typed<double>(g, terms, pool);
      break;
    case DataType::uint32:
      result = convolve_typed<uint32_t>(g, terms, pool);
      break;
    case DataType::uint64:
      result = convolve_typed<uint64_t>(g, terms, pool);
      break;
    default:
      throw InternalError("a type that no convolution computes in");
  }
  std::vector<int> channels_second{0, result.rank() - 1};
  for (int d = 1; d + 1 < result.rank(); ++d) channels_second.push_back(d);
  return transposed(result, channels_second).reshaped(std::move(shape));
}

}  // namespace fusewise::graph
