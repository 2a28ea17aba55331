#include "cli/shared_options.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdlib>

#include "base/cpu_limits.h"

namespace fusewise::cli {
namespace {

session::ValueRange parse_range(const std::string& text) {
  const std::vector<std::string> ends = split(text, ",");
  if (ends.size() != 2)
    throw UsageError(fmt::format("--val-range: '{}' is no pair of numbers such as 0,30521", text));
  const session::ValueRange range{parse_number("--val-range", ends[0]), parse_number("--val-range", ends[1])};
  if (!(range.low <= range.high))
    throw UsageError(fmt::format("--val-range: '{}' ends before it begins", text));
  return range;
}

}  // namespace

std::vector<std::string> split(const std::string& text, std::string_view separators) {
  std::vector<std::string> pieces;
  size_t begin = 0;
  while (true) {
    const size_t end = text.find_first_of(separators, begin);
    pieces.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return pieces;
    begin = end + 1;
  }
}

std::pair<std::string, std::string> split_assignment(std::string_view option, const std::string& text) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0)
    throw UsageError(fmt::format("{}: '{}' is not of the form NAME=VALUE", option, text));
  return {text.substr(0, at), text.substr(at + 1)};
}

int64_t parse_integer(std::string_view option, const std::string& text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || text.empty())
    throw UsageError(fmt::format("{}: '{}' is no whole number", option, text));
  return value;
}

std::vector<int64_t> parse_shape(std::string_view option, const std::string& text) {
  std::vector<int64_t> shape;
  if (text.empty() || text == "scalar") return shape;
  for (const std::string& extent : split(text, "x,")) {
    shape.push_back(parse_integer(option, extent));
    if (shape.back() < 0) throw UsageError(fmt::format("{}: '{}' has a negative extent", option, text));
  }
  return shape;
}

double parse_number(std::string_view option, const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || text.empty())
    throw UsageError(fmt::format("{}: '{}' is no number", option, text));
  return value;
}

void InputOptions::declare(Parser& parser) {
  parser.option(
      "--inputs", source, "DIR|FILE",
      "inputs: a folder with NAME.npy files ('/' and ':' in a name become '_'), a .npz file, or a folder "
      "test_data_set_N of an ONNX test");
  parser.list("--input", files, "NAME=FILE", "one input from a .npy or .pb file");
  parser.list("--shape", shapes, "NAME=2x128",
              "the shape of an input at run time; NAME may be a pattern such as 'past_*'");
  parser.list("--dim", dims, "NAME=128", "the size of a symbolic dimension at run time");
  parser.list("--val-range", ranges, "NAME=0,30521",
              "the values of a random input: integers up to the second included");
  parser.option("--seed", seed, "N", "of random inputs (0)");
}

session::InputRequest InputOptions::request() const {
  session::InputRequest request;
  request.source = source;
  request.seed = static_cast<uint64_t>(seed.value_or(0));
  request.warn_of_random = true;
  for (const std::string& text : files) {
    // A file's name may have a '=', too: an input's name that has one needs a folder or an archive.
    const size_t at = text.find('=');
    if (at == std::string::npos || at == 0)
      throw UsageError(fmt::format("--input: '{}' is not of the form NAME=FILE", text));
    request.files.emplace_back(text.substr(0, at), text.substr(at + 1));
  }
  for (const std::string& text : shapes) {
    const auto [name, value] = split_assignment("--shape", text);
    request.shapes.emplace_back(name, parse_shape("--shape", value));
  }
  for (const std::string& text : dims) {
    const auto [name, value] = split_assignment("--dim", text);
    const int64_t extent = parse_integer("--dim", value);
    if (extent < 0) throw UsageError(fmt::format("--dim: '{}' is negative", text));
    request.dims[name] = extent;
  }
  for (const std::string& text : ranges) {
    const auto [name, value] = split_assignment("--val-range", text);
    request.ranges.emplace_back(name, parse_range(value));
  }
  return request;
}

void ThreadOptions::declare(Parser& parser) {
  parser.option("--threads", threads, "auto|N",
                "threads to run on; auto: the physical cores within affinity mask and quota");
  parser.flag("--pin", pin, "keep each thread on one processor");
}

int ThreadOptions::count() const {
  std::string text = threads;
  std::string option = "--threads";
  const char* environment = std::getenv("FUSEWISE_NUM_THREADS");
  if (text == "auto" && environment != nullptr && *environment != '\0') {
    text = environment;
    option = "FUSEWISE_NUM_THREADS";
  }
  if (text == "auto") return default_thread_count();
  const int64_t count = parse_integer(option, text);
  if (count < 1 || count > 1024)
    throw UsageError(fmt::format("{}: {} is not between 1 and 1024", option, count));
  return static_cast<int>(count);
}

}  // namespace fusewise::cli
