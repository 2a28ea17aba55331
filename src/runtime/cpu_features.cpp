#include "runtime/cpu_features.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace fusewise::runtime {

CpuFeatures cpu_features() {
  return {cpu_has("avx2") && cpu_has("fma"),
          cpu_has("avx512f") && cpu_has("avx512bw") && cpu_has("avx512dq") && cpu_has("avx512vl")};
}

#if defined(__x86_64__)

namespace {

struct Feature {
  std::string_view name;
  bool (*present)();
};

// The builtin takes literals only. It looks at the saved register state too.
constexpr Feature features[] = {
    {"avx", [] { return __builtin_cpu_supports("avx") != 0; }},
    {"avx2", [] { return __builtin_cpu_supports("avx2") != 0; }},
    {"avx512bf16", [] { return __builtin_cpu_supports("avx512bf16") != 0; }},
    {"avx512bw", [] { return __builtin_cpu_supports("avx512bw") != 0; }},
    {"avx512dq", [] { return __builtin_cpu_supports("avx512dq") != 0; }},
    {"avx512f", [] { return __builtin_cpu_supports("avx512f") != 0; }},
    {"avx512vl", [] { return __builtin_cpu_supports("avx512vl") != 0; }},
    {"avx512vnni", [] { return __builtin_cpu_supports("avx512vnni") != 0; }},
    {"bmi", [] { return __builtin_cpu_supports("bmi") != 0; }},
    {"bmi2", [] { return __builtin_cpu_supports("bmi2") != 0; }},
    {"f16c", [] { return __builtin_cpu_supports("f16c") != 0; }},
    {"fma", [] { return __builtin_cpu_supports("fma") != 0; }},
    {"popcnt", [] { return __builtin_cpu_supports("popcnt") != 0; }},
    {"sse2", [] { return __builtin_cpu_supports("sse2") != 0; }},
    {"sse4.1", [] { return __builtin_cpu_supports("sse4.1") != 0; }},
    {"sse4.2", [] { return __builtin_cpu_supports("sse4.2") != 0; }},
};

}  // namespace

bool cpu_has(std::string_view feature) {
  __builtin_cpu_init();
  for (const Feature& known : features)
    if (known.name == feature) return known.present();
  return false;
}

#elif defined(__aarch64__)

bool cpu_has(std::string_view feature) {
  return feature == "asimd" && (getauxval(AT_HWCAP) & HWCAP_ASIMD) != 0;
}

#else

bool cpu_has(std::string_view) { return false; }

#endif

}  // namespace fusewise::runtime
