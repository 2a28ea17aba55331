// Runs the cases of files, compares or rewrites their expectations.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <exception>

#include "base/error.h"
#include "base/mapped_file.h"
#include "support/case_file.h"

namespace fusewise::test {

namespace {

constexpr std::string_view expectation = "expect";

std::vector<std::filesystem::path> case_files(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() == ".case") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

// Both texts with what they share at the beginning and end unmarked, and the rest marked - and +.
std::string difference(std::string_view expected, std::string_view actual) {
  const auto old_lines = split_lines(expected);
  const auto new_lines = split_lines(actual);
  const size_t shorter = std::min(old_lines.size(), new_lines.size());
  size_t head = 0;
  while (head < shorter && old_lines[head] == new_lines[head]) ++head;
  size_t tail = 0;
  while (tail < shorter - head &&
         old_lines[old_lines.size() - 1 - tail] == new_lines[new_lines.size() - 1 - tail]) {
    ++tail;
  }
  std::string out;
  const auto append = [&](char mark, const std::vector<std::string_view>& lines, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) out += fmt::format("  {} {}\n", mark, lines[i]);
  };
  append(' ', old_lines, 0, head);
  append('-', old_lines, head, old_lines.size() - tail);
  append('+', new_lines, head, new_lines.size() - tail);
  append(' ', old_lines, old_lines.size() - tail, old_lines.size());
  return out;
}

void set_expectation(Case& test_case, const std::string& text) {
  for (CaseBlock& block : test_case.blocks) {
    if (block.name != expectation) continue;
    block.text = text;
    return;
  }
  test_case.blocks.push_back({std::string(expectation), text});
}

// What is left of a text after it was printed into a file and parsed again.
std::string as_stored(std::string text) {
  while (text.ends_with("\n\n")) text.pop_back();
  if (text == "\n") text.clear();
  return text;
}

void run_file(const std::filesystem::path& path, CaseFunction function, const CaseOptions& options,
              CaseReport& report) {
  CaseFile file = parse_case_file(MappedFile(path).text(), path.string());
  int updated = 0;
  for (Case& test_case : file.cases) {
    if (test_case.name.find(options.only) == std::string::npos) continue;
    ++report.ran;
    const std::string actual = as_stored(outcome_of(test_case, function));
    const bool known = test_case.has(expectation);
    if (known && test_case.text(expectation) == actual) continue;
    if (options.update) {
      set_expectation(test_case, actual);
      ++updated;
      continue;
    }
    const std::string expected = known ? test_case.text(expectation) : std::string();
    report.failures.push_back({path, test_case.line,
                               fmt::format("case \"{}\" ({}):\n{}", test_case.name,
                                           known ? "- expected, + actual" : "it has no block expect",
                                           difference(expected, actual))});
  }
  if (updated > 0) write_file_atomically(path, print_case_file(file));
  report.updated += updated;
}

}  // namespace

std::string outcome_of(const Case& test_case, CaseFunction function) {
  std::string text;
  try {
    text = function(test_case);
  } catch (const InternalError& error) {
    text = fmt::format("internal error: {}", error.what());
  } catch (const UnsupportedError& error) {
    text = fmt::format("unsupported: {}", error.what());
  } catch (const std::exception& error) {
    text = fmt::format("error: {}", error.what());
  }
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  return text;
}

CaseOptions case_options_from_environment() {
  const char* update = std::getenv("FUSEWISE_UPDATE_CASES");
  const char* only = std::getenv("FUSEWISE_ONLY_CASE");
  return {update && std::string_view(update) == "1", only ? only : ""};
}

CaseReport check_cases(const std::filesystem::path& path, CaseFunction function, const CaseOptions& options) {
  CaseReport report;
  for (const std::filesystem::path& file : case_files(path)) {
    try {
      run_file(file, function, options, report);
    } catch (const UserError& error) {
      report.failures.push_back({file, 1, error.what()});
    }
  }
  return report;
}

void run_cases(const std::string& path, CaseFunction function) {
  const CaseOptions options = case_options_from_environment();
  const CaseReport report = check_cases(std::filesystem::path(FUSEWISE_TESTS) / path, function, options);
  for (const CaseFailure& failure : report.failures) {
    ADD_FAILURE_AT(failure.file.c_str(), failure.line) << failure.message;
  }
  if (report.updated > 0) fmt::print("updated {} of {} cases in {}\n", report.updated, report.ran, path);
  if (report.ran == 0 && report.failures.empty() && options.only.empty()) {
    ADD_FAILURE() << "there are no cases in tests/" << path;
  }
}

}  // namespace fusewise::test
