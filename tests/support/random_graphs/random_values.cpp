#include "support/random_graphs/random_values.h"

#include <cmath>
#include <limits>

#include "numerics/error_bound.h"

namespace fusewise::test {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double special_float(DataType type, Random& random) {
  const double greatest = greatest_finite(type), least = least_positive(type);
  return random.one_of({0.0,   -0.0,   infinity,  -infinity, std::nan(""), greatest, -greatest,
                        least, -least, least * 3, 89.0,      -104.0,       300.0,    65504.0,
                        1e-40, 6e-8,   0.5,       -2.5,      1e30,         -1e-30});
}

double random_float(DataType type, Sort sort, Random& random) {
  const double spread = random.unit() - 0.5;
  switch (sort) {
    case Sort::special:
      if (random.chance(30)) return special_float(type, random);
      break;
    case Sort::shifted:
      return 1000 + spread * 1e-2;
    case Sort::whole:
      return static_cast<double>(random.between(-3, 3));
    case Sort::ordinary:
      break;
  }
  if (random.chance(3)) return random.one_of({0.0, -0.0, 1.0, -1.0});
  return spread * random.one_of({0.5, 2.0, 2.0, 8.0});
}

int64_t random_integer(DataType type, Sort sort, Random& random) {
  if (sort == Sort::special && random.chance(40)) {
    const int bits = bits_of(type);
    // The least value, or half the range; its neighbours wrap around.
    const uint64_t sign = uint64_t{1} << (bits - 1);
    return static_cast<int64_t>(
        random.one_of<uint64_t>({sign, sign - 1, ~uint64_t{0}, 0, 1, sign + 1, random.next()}));
  }
  return sort == Sort::shifted ? 100 + random.below(4) : random.between(-9, 9);
}

}  // namespace

Sort random_sort(Random& random) {
  return random.one_of({Sort::ordinary, Sort::ordinary, Sort::ordinary, Sort::ordinary, Sort::ordinary,
                        Sort::special, Sort::special, Sort::shifted, Sort::whole, Sort::whole});
}

Scalar random_scalar(DataType type, Sort sort, Random& random) {
  if (is_float(type)) return convert({DataType::float64, random_float(type, sort, random), 0}, type);
  const int64_t value = type == DataType::boolean ? random.below(2) : random_integer(type, sort, random);
  return convert({DataType::int64, 0, value}, type);
}

Scalar random_index(DataType type, int64_t extent, Random& random) {
  const int64_t value = random.chance(3) ? random.between(-2 * extent, 2 * extent)
                                         : random.between(is_signed(type) ? -extent : 0, extent - 1);
  return convert({DataType::int64, 0, value}, type);
}

}  // namespace fusewise::test
