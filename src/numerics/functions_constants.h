// Constants of functions_impl.h: near-minimax polynomials (Chebyshev fits of the functions named, made in 40
// digits; the one of exp in float32 for least relative error of the result), highest power first, and sums of
// numbers that stand for one more precise constant.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace fusewise::function_constants {

template <bool is_double>
struct Table;

template <>
struct Table<false> {
  static constexpr int mantissa_bits = 23, exponent_bias = 127;
  static constexpr double least_normal = 0x1p-126, infinity_threshold = 0x1.fffffep127;
  // 1.5 * 2^mantissa_bits: adding it rounds to an integer and leaves that integer in the low bits.
  static constexpr double round_shift = 0x1.8p23;
  static constexpr double exp_low = -104, exp_high = 89;  // beyond: 0 and infinity
  static constexpr double exp2_low = -151, exp2_high = 129;
  static constexpr double ln2_high = 0x1.62e4p-1, ln2_low = 0x1.7f7d1cp-20;  // high: trailing zeros
  static constexpr double two_over_ln2[] = {0x1.715476p+1, 0x1.4ae0cp-25};
  static constexpr double two_over_3ln2[] = {0x1.ec709ep-1, -0x1.e2fe02p-28};
  static constexpr double half_pi[] = {0x1.921fb6p+0, -0x1.777a5cp-25};
  static constexpr double square_root_half = 0x1.6a09e6p-1;
  // (e^r - 1 - r) / r^2 on |r| <= ln(2)/2
  static constexpr double exp[] = {0x1.6a5184p-10, 0x1.12398p-7, 0x1.5558acp-5, 0x1.555492p-3, 0x1.fffffcp-2};
  // (2^r - 1) / r on |r| <= 1/2
  static constexpr double exp2[] = {0x1.00a594p-16, 0x1.44402p-13, 0x1.5d879ep-10, 0x1.3b2a1cp-7,
                                    0x1.c6b08ep-5,  0x1.ebfbep-3,  0x1.62e43p-1};
  // (log(1 + f) - f + f^2/2) / f^3 on sqrt(1/2) - 1 .. sqrt(2) - 1
  static constexpr double log[] = {0x1.1d8ebep-4,  -0x1.d635e4p-4, 0x1.dea28cp-4,
                                   -0x1.fcf4c2p-4, 0x1.23d218p-3,  -0x1.555b4ap-3,
                                   0x1.999d5ap-3,  -0x1.fffffcp-3, 0x1.555554p-2};
  // (2 atanh(u) / ln 2 - 2u / ln 2 - 2u^3 / (3 ln 2)) / u^5 over z = u^2
  static constexpr double pow_tail[] = {0x1.547f04p-2, 0x1.a5f49ep-2, 0x1.2776ccp-1};
  // (tanh(x)/x - 1) / z over z = x^2 <= 0.58^2
  static constexpr double tanh[] = {-0x1.a3d7e4p-8, 0x1.5b41fcp-6, -0x1.b976ecp-5, 0x1.110f5cp-3,
                                    -0x1.555554p-2};
  // erf(x)/x - 1 over z = x^2 <= 1
  static constexpr double erf[] = {0x1.4a569p-14, -0x1.a45088p-11, 0x1.54127p-8, -0x1.b7fabap-6,
                                   0x1.ce2d1p-4,  -0x1.81273ep-2,  0x1.06eba8p-3};
  static constexpr double erf_limit = 4;  // erf is 1 from here on
  // log(erfc(t)) over t on 0.99 .. 3.95, weighted by erfc(t)
  static constexpr double erf_tail[] = {-0x1.6bd7e4p-16, 0x1.cec602p-12, -0x1.138cbcp-8, 0x1.9d0304p-6,
                                        -0x1.bc1516p-4,  -0x1.443564p-1, -0x1.212c0cp+0, 0x1.8a5762p-13};
  // (sin(x)/x - 1) / z and (cos(x) - 1 + z/2) / z^2 over z = x^2 <= (pi/4)^2
  static constexpr double sin[] = {-0x1.9ac856p-13, 0x1.110c26p-7, -0x1.555552p-3};
  static constexpr double cos[] = {0x1.9bd786p-16, -0x1.6c12dp-10, 0x1.555554p-5};
  // (atan(x)/x - 1) / z over z = x^2 <= (sqrt(2) - 1)^2
  static constexpr double atan[] = {-0x1.08432cp-4, 0x1.b80f88p-4, -0x1.24202ep-3, 0x1.99973p-3,
                                    -0x1.555554p-2};
  // Circle reduction: bits of a chunk of 2/pi, bits of a window of arguments, number of windows.
  static constexpr int chunk_bits = 24, window_bits = 13, windows = 8;
  static constexpr double tiny_angle = 0x1p-13;  // sin(x) and tan(x) round to x or its neighbour
};

template <>
struct Table<true> {
  static constexpr int mantissa_bits = 52, exponent_bias = 1023;
  static constexpr double least_normal = 0x1p-1022, infinity_threshold = 0x1.fffffffffffffp1023;
  static constexpr double round_shift = 0x1.8p52;
  static constexpr double exp_low = -746, exp_high = 710;
  static constexpr double exp2_low = -1076, exp2_high = 1025;
  static constexpr double ln2_high = 0x1.62e42fefa2p-1, ln2_low = 0x1.9ef35793c7673p-41;
  static constexpr double two_over_ln2[] = {0x1.71547652b82fep+1, 0x1.777d0ffda0d24p-55};
  static constexpr double two_over_3ln2[] = {0x1.ec709dc3a03fdp-1, 0x1.d27f05548af0cp-55};
  static constexpr double half_pi[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
  static constexpr double square_root_half = 0x1.6a09e667f3bcdp-1;
  static constexpr double exp[] = {0x1.1f73102e57f8bp-29,
                                   0x1.af4e000e84be8p-26,
                                   0x1.27e4db5e389d2p-22,
                                   0x1.71de0226bd07ap-19,
                                   0x1.a01a01a6da7e2p-16,
                                   0x1.a01a01abeb69fp-13,
                                   0x1.6c16c16c162d1p-10,
                                   0x1.11111111100d5p-7,
                                   0x1.5555555555556p-5,
                                   0x1.5555555555557p-3,
                                   0x1p-1};
  static constexpr double exp2[] = {0x1.8219344992fffp-40, 0x1.c4b5c9bf2a452p-36, 0x1.e8ca8dc8a2ff2p-32,
                                    0x1.e4cf03aad6ffap-28, 0x1.b5253d41fcbd1p-24, 0x1.62c02246050b8p-20,
                                    0x1.ffcbfc5889ca8p-17, 0x1.430912f86ac50p-13, 0x1.5d87fe78a6732p-10,
                                    0x1.3b2ab6fba4e7bp-7,  0x1.c6b08d704a0c0p-5,  0x1.ebfbdff82c58fp-3,
                                    0x1.62e42fefa39efp-1};
  // (2 atanh(u) - 2u) / u^3 over z = u^2
  static constexpr double log[] = {0x1.2b5900de53b32p-3, 0x1.39fe51a7c18f9p-3, 0x1.7462b51cb66b1p-3,
                                   0x1.c71c62e3f11e6p-3, 0x1.2492492df281ap-2, 0x1.99999999952d7p-2,
                                   0x1.5555555555558p-1};
  static constexpr double pow_tail[] = {0x1.5a60ae4e0bdd7p-3, 0x1.59e08811ee6b3p-3, 0x1.89fed27be41bep-3,
                                        0x1.c68f2f01d5108p-3, 0x1.0c9a84bf5081cp-2, 0x1.484b13d79c3b6p-2,
                                        0x1.a61762a7adfa8p-2, 0x1.2776c50ef9bfep-1};
  static constexpr double tanh[] = {0x1.ea263e8146691p-18,  -0x1.12d6ce434d176p-15, 0x1.89ab911d794cfp-14,
                                    -0x1.f385153b499f3p-13, 0x1.353e20945ae42p-11,  -0x1.7da195b6313eap-10,
                                    0x1.d6d3bb9a15a05p-9,   -0x1.226e350eaf8ccp-7,  0x1.664f48815f6efp-6,
                                    -0x1.ba1ba1ba1875ap-5,  0x1.11111111110fap-3,   -0x1.5555555555555p-2};
  static constexpr double erf[] = {0x1.05ffd737fb32ep-34,  -0x1.389d4f2641625p-30, 0x1.f7b4bf3b13964p-27,
                                   -0x1.5f1ecb6f0764cp-23, 0x1.b9df224ca4b97p-20,  -0x1.f4d1e3183f7aep-17,
                                   0x1.f9a321d5b8e1ep-14,  -0x1.c02db3dac435fp-11, 0x1.565bcd0dbaa38p-8,
                                   -0x1.b82ce31284e00p-6,  0x1.ce2f21a042b30p-4,   -0x1.812746b0379e6p-2,
                                   0x1.06eba8214db69p-3};
  static constexpr double erf_limit = 6;
  // e^(t^2) erfc(t) over v = (t - 3) / (t + 3), t on 0.99 .. 6
  static constexpr double erf_tail[] = {
      0x1.3f03c49c94befp-27,  0x1.581853bcea62ep-20, 0x1.0e2a8f4c4364ep-19, -0x1.0cd8808d56f27p-17,
      -0x1.af0aea04c2e54p-17, 0x1.0cb34eb30cf9ep-14, 0x1.7b9f1d297a6dbp-15, -0x1.3908603323dafp-11,
      0x1.73101f3ae5674p-11,  0x1.17c8390a6dfdfp-8,  -0x1.8fa58eb5db897p-6, 0x1.258b13b00e4e1p-4,
      -0x1.336ffbef08c00p-3,  0x1.f6ff204105a0cp-3,  -0x1.4e102b9cf8513p-2, 0x1.6e9827d229d2dp-3};
  static constexpr double sin[] = {-0x1.ab16f5caa198ap-41, 0x1.61217d9252c03p-33,  -0x1.ae645410e937bp-26,
                                   0x1.71de3a545f836p-19,  -0x1.a01a01a01992fp-13, 0x1.1111111111110p-7,
                                   -0x1.5555555555555p-3};
  static constexpr double cos[] = {0x1.ab779550c8d9bp-45,  -0x1.9394b8bd50ae1p-37, 0x1.1eed8deac3dfep-29,
                                   -0x1.27e4fb77125c5p-22, 0x1.a01a01a019d06p-16,  -0x1.6c16c16c16c16p-10,
                                   0x1.5555555555555p-5};
  static constexpr double atan[] = {-0x1.c807c7fd8901cp-7, 0x1.f5ea203927f08p-6,  -0x1.503b1df32251dp-5,
                                    0x1.829c9a46152b5p-5,  -0x1.aebd143c55a36p-5, 0x1.e1d8e89291b2fp-5,
                                    -0x1.1110ceddb22d6p-4, 0x1.3b13aea970e58p-4,  -0x1.745d173561ae0p-4,
                                    0x1.c71c71c6ddb13p-4,  -0x1.24924924920acp-3, 0x1.9999999999997p-3,
                                    -0x1.5555555555555p-2};
  static constexpr int chunk_bits = 53, window_bits = 41, windows = 24;
  static constexpr double tiny_angle = 0x1p-28;
};

// The first 1280 bits of 2/pi after the binary point.
inline constexpr std::string_view two_over_pi =
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424DD2E006492EEA09D1921C"
    "FE1DEB1CB129A73EE88235F52EBB4484E99C7026B45F7E413991D639835339F49C845F8BBDF9283B1FF897FFDE05980F"
    "EF2F118B5A0A6D1F6D367ECF27CB09B74F463F669E5FEA2D7527BAC7EBE5F17B3D0739F78A5292EA6BFB5FB11F8D5D08"
    "56033046FC7B6BABF0CFBC209AF4361D";

constexpr int bit_of_two_over_pi(int place) {  // place 0 is worth 1/2; 0 outside
  if (place < 0 || place >= 1280) return 0;
  char digit = two_over_pi[static_cast<size_t>(place / 4)];
  int value = digit <= '9' ? digit - '0' : digit - 'A' + 10;
  return (value >> (3 - place % 4)) & 1;
}

// Chunk `chunk` of (2^shift * 2/pi) mod 4: its bits from the place of 2 downwards, `bits` to a chunk.
constexpr double chunk_of_two_over_pi(int shift, int chunk, int bits) {
  double place_value = 2, sum = 0;
  for (int i = 0; i < chunk * bits; ++i) place_value /= 2;
  for (int i = 0; i < bits; ++i, place_value /= 2)
    if (bit_of_two_over_pi(shift - 2 + chunk * bits + i)) sum += place_value;
  return sum;
}

// The four chunks of each window of arguments.
template <class T>
constexpr auto make_chunks() {
  std::array<std::array<double, 4>, T::windows> chunks{};
  for (int window = 0; window < T::windows; ++window)
    for (int i = 0; i < 4; ++i)
      chunks[static_cast<size_t>(window)][static_cast<size_t>(i)] =
          chunk_of_two_over_pi(window * T::window_bits, i, T::chunk_bits);
  return chunks;
}

template <bool is_double>
inline constexpr auto chunks_of_two_over_pi = make_chunks<Table<is_double>>();

}  // namespace fusewise::function_constants
