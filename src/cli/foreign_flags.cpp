#include "cli/foreign_flags.h"

#include <fmt/core.h>

#include <string_view>

#include "cli/parser.h"

namespace fusewise::cli {
namespace {

struct Translation {
  std::string_view flag, program, advice;
};

// Sorted by flag.
constexpr Translation translations[] = {
    {"--allowWeightStreaming", "trtexec", "weights stay in memory; leave it out"},
    {"--avgRuns", "trtexec", "use --iterations N; bench --json lists every run"},
    {"--best", "trtexec", "use --numerics fast; element types are never lowered silently"},
    {"--bf16", "trtexec", "use --precision bf16"},
    {"--builderOptimizationLevel", "trtexec", "use --search and --search-budget"},
    {"--device", "other tools", "use --target"},
    {"--dumpProfile", "trtexec", "use bench --profile"},
    {"--duration", "trtexec", "use --seconds S"},
    {"--exportOutput", "trtexec", "use run --output-dir DIR"},
    {"--exportProfile", "trtexec", "use bench --profile --json"},
    {"--exportTimes", "trtexec", "use bench --json, which lists every run"},
    {"--fp16", "trtexec", "use --precision f16"},
    {"--fp8", "trtexec", "use --precision f8"},
    {"--int8", "trtexec", "use --precision int8"},
    {"--iree-hal-target-backends", "iree-compile", "use --target cpu"},
    {"--iree-hal-target-device", "iree-compile", "use --target cpu"},
    {"--loadEngine", "trtexec", "give the model; compiled programs are cached (--cache DIR)"},
    {"--loadInputs", "trtexec", "use --input NAME=FILE"},
    {"--maxShapes", "trtexec",
     "leave it out: programs stay dynamic; --shape NAME=2x128 chooses the sizes of a run"},
    {"--minShapes", "trtexec",
     "leave it out: programs stay dynamic; --shape NAME=2x128 chooses the sizes of a run"},
    {"--model", "trtexec", "give the model as the argument after the command"},
    {"--noDataTransfers", "trtexec", "leave it out: nothing is transferred"},
    {"--noTF32", "trtexec", "leave it out: float32 is never lowered"},
    {"--num-threads", "other tools", "use --threads N"},
    {"--onnx", "trtexec", "give the model as the argument after the command"},
    {"--optShapes", "trtexec", "use --shape NAME=2x128"},
    {"--output-format-onnx", "other tools", "use run --output-format pb"},
    {"--percentile", "trtexec", "leave it out: bench prints the percentiles"},
    {"--repeat", "tvmc", "use --iterations N"},
    {"--saveEngine", "trtexec", "leave it out: compiled programs are cached (--cache DIR)"},
    {"--separateProfileRun", "trtexec", "use bench --profile"},
    {"--shapes", "trtexec", "use --shape NAME=2x128"},
    {"--skipInference", "trtexec", "use the command plan"},
    {"--tuning-records", "tvmc", "use --plan FILE"},
    {"--useCudaGraph", "trtexec", "leave it out: kernels are launched without such cost"},
    {"--warmUp", "trtexec", "use --warmup S, in seconds"},
    {"--workspace", "trtexec", "leave it out: memory is planned from the model"},
    {"-hint", "benchmark_app", "use bench for latency"},
    {"-infer_precision", "benchmark_app", "use --precision"},
    {"-m", "benchmark_app", "give the model as the argument after the command"},
    {"-niter", "benchmark_app", "use --iterations N"},
    {"-nthreads", "benchmark_app", "use --threads N"},
    {"-shape", "benchmark_app", "use --shape NAME=2x128"},
};

}  // namespace

void throw_if_foreign(const std::string& flag) {
  for (const Translation& row : translations)
    if (row.flag == flag) throw UsageError(fmt::format("{} is {}'s; {}", row.flag, row.program, row.advice));
}

}  // namespace fusewise::cli
