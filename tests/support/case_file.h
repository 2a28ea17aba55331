// Text cases. A `.case` file holds several cases, each made of named blocks:
//
//   # A comment, before the first block of a case.
//   === fuses a chain
//   --- input
//   graph g(x: float32[4]) ...
//   --- expect
//   one kernel
//
// The text of a block is everything up to the next line that begins with "--- " or "=== "; a line of the
// text that begins so is written with a backslash before it. Trailing blank lines of a block are dropped,
// so that cases may be set apart.
//
// A test file of a room needs only
//
//   TEST(ConstantFolding, Cases) {
//     fusewise::test::run_cases("rewrite/constant_folding", [](const Case& c) { ... return text; });
//   }
//
// which compares the returned text with the block `expect` of each case, for every `.case` file of that
// folder below tests/ (or of the one file so named). With FUSEWISE_UPDATE_CASES=1 (tools/golden --update)
// the expectations are rewritten instead.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"

namespace fusewise::test {

struct CaseBlock {
  std::string name;
  std::string text;  // ends with a newline unless empty
};

struct Case {
  std::string name;
  std::vector<std::string> comments;  // lines between the name and the first block, kept as they are
  std::vector<CaseBlock> blocks;
  int line = 0;  // of the name, counted from 1

  bool has(std::string_view block) const;
  // The text of a block; throws UserError that names the case when it has none.
  const std::string& text(std::string_view block) const;
  // The text without the line end, for blocks that hold one word, or `otherwise` when there is no such block.
  std::string word(std::string_view block, std::string_view otherwise = {}) const;
};

struct CaseFile {
  std::vector<std::string> comments;  // lines before the first case
  std::vector<Case> cases;
};

// `name` stands in messages. Throws UserError with the line for text outside of blocks, a block without a
// case, a name used twice, or a file without cases.
CaseFile parse_case_file(std::string_view text, const std::string& name);
std::string print_case_file(const CaseFile& file);

using CaseFunction = FunctionRef<std::string(const Case&)>;

// What a case yields: the function's text, or, when it throws, "error: ", "unsupported: " or "internal error: "
// and the message. A newline is added at the end when it lacks one.
std::string outcome_of(const Case& test_case, CaseFunction function);

struct CaseOptions {
  bool update = false;    // rewrite expectations instead of comparing
  std::string only = {};  // a part of the names of the cases to run
};
CaseOptions case_options_from_environment();  // FUSEWISE_UPDATE_CASES and FUSEWISE_ONLY_CASE

// One case that came out otherwise.
struct CaseFailure {
  std::filesystem::path file;
  int line = 0;
  std::string message;
};
struct CaseReport {
  int ran = 0;
  int updated = 0;
  std::vector<CaseFailure> failures;
};

// Runs every case of a file, or of the `.case` files of a folder in the order of their names.
CaseReport check_cases(const std::filesystem::path& path, CaseFunction function, const CaseOptions& options);

// The same as a part of the running GoogleTest test. `path` is relative to tests/. No case at all is a failure.
void run_cases(const std::string& path, CaseFunction function);

}  // namespace fusewise::test
