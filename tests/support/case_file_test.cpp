#include "support/case_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/temporary_folder.h"

namespace fusewise::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view sample =
    "# About the file.\n"
    "\n"
    "=== first\n"
    "# About the case.\n"
    "--- input\n"
    "a\n"
    "\n"
    "# text, not a comment\n"
    "\n"
    "--- expect\n"
    "A\n"
    "\n"
    "=== second one\n"
    "--- input\n"
    "\\--- no block\n"
    "--- expect\n";

std::string upper(const Case& test_case) {
  std::string text = test_case.text("input");
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

TEST(CaseFile, ParsesCasesAndBlocks) {
  const CaseFile file = parse_case_file(sample, "sample.case");
  EXPECT_THAT(file.comments, ElementsAre("# About the file."));
  ASSERT_EQ(file.cases.size(), 2U);
  EXPECT_EQ(file.cases[0].name, "first");
  EXPECT_EQ(file.cases[0].line, 3);
  EXPECT_THAT(file.cases[0].comments, ElementsAre("# About the case."));
  EXPECT_EQ(file.cases[0].text("input"), "a\n\n# text, not a comment\n");
  EXPECT_EQ(file.cases[0].word("expect"), "A");
  EXPECT_EQ(file.cases[0].word("mode", "strict"), "strict");
  EXPECT_EQ(file.cases[1].name, "second one");
  EXPECT_EQ(file.cases[1].text("input"), "--- no block\n");
  EXPECT_EQ(file.cases[1].text("expect"), "");
  EXPECT_THROW(file.cases[1].text("output"), UserError);
}

TEST(CaseFile, PrintingAndParsingAgain) {
  const CaseFile file = parse_case_file(sample, "sample.case");
  const std::string printed = print_case_file(file);
  EXPECT_EQ(print_case_file(parse_case_file(printed, "printed")), printed);
  EXPECT_THAT(printed, HasSubstr("\n\\--- no block\n"));
  CaseFile backslashes;
  const std::string text = "\\--- x\n\\\\=== y\n\\plain\n";
  backslashes.cases.push_back({"one", {}, {{"input", text}}, 1});
  EXPECT_EQ(parse_case_file(print_case_file(backslashes), "printed").cases[0].text("input"), text);
}

std::string parse_error(std::string_view text) {
  try {
    parse_case_file(text, "f.case");
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(CaseFile, ErrorsNameTheLine) {
  EXPECT_EQ(parse_error(""), "f.case:1: the file has no cases");
  EXPECT_EQ(parse_error("# only\nwords\n"), "f.case:2: \"words\" stands outside of any block");
  EXPECT_EQ(parse_error("--- input\n"), "f.case:1: a block before the first case");
  EXPECT_EQ(parse_error("=== a\n=== b\n--- input\n"), "f.case:1: case \"a\" has no blocks");
  EXPECT_EQ(parse_error("=== a\n--- x\n=== a\n--- x\n"), "f.case:3: a second case named \"a\"");
  EXPECT_EQ(parse_error("=== a\n--- x\n--- x\n"), "f.case:3: a second block \"x\" in one case");
}

TEST(CaseRunner, ReportsDifferencesWithTheirLine) {
  const TemporaryFolder folder;
  write_file_atomically(folder.path() / "one.case", sample);
  const CaseReport report = check_cases(folder.path(), upper, {});
  EXPECT_EQ(report.ran, 2);
  ASSERT_EQ(report.failures.size(), 2U);
  EXPECT_EQ(report.failures[0].line, 3);
  EXPECT_EQ(report.failures[0].message,
            "case \"first\" (- expected, + actual):\n    A\n  + \n  + # TEXT, NOT A COMMENT\n");
  EXPECT_EQ(report.failures[1].message, "case \"second one\" (- expected, + actual):\n  + --- NO BLOCK\n");
}

TEST(CaseRunner, UpdatesExpectationsAndThenAgrees) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "one.case";
  write_file_atomically(file, sample);
  write_file_atomically(folder.path() / "notes.txt", "not a case file");
  CaseOptions options;
  options.update = true;
  options.only = "second";
  EXPECT_EQ(check_cases(folder.path(), upper, options).updated, 1);
  EXPECT_THAT(MappedFile(file).text(), HasSubstr("--- expect\n\\--- NO BLOCK\n"));
  options.only.clear();
  EXPECT_EQ(check_cases(folder.path(), upper, options).updated, 1);
  const CaseReport report = check_cases(folder.path(), upper, {});
  EXPECT_EQ(report.ran, 2);
  EXPECT_TRUE(report.failures.empty());
}

TEST(CaseRunner, ErrorsAreOutcomes) {
  const Case test_case{"name", {}, {{"input", "x\n"}}, 1};
  EXPECT_EQ(outcome_of(test_case, [](const Case&) { return std::string("text"); }), "text\n");
  EXPECT_EQ(outcome_of(test_case, [](const Case&) -> std::string { throw UserError("bad"); }),
            "error: bad\n");
  EXPECT_EQ(outcome_of(test_case, [](const Case&) -> std::string { throw UnsupportedError("rare"); }),
            "unsupported: rare\n");
  EXPECT_EQ(outcome_of(test_case, [](const Case&) -> std::string { throw InternalError("broken"); }),
            "internal error: broken\n");
  EXPECT_EQ(outcome_of(test_case, [](const Case& c) { return c.text("missing"); }),
            "error: case \"name\" has no block \"missing\"\n");
}

TEST(CaseRunner, AMissingOrBrokenFileIsAFailure) {
  const TemporaryFolder folder;
  EXPECT_EQ(check_cases(folder.path() / "none.case", upper, {}).failures.size(), 1U);
  write_file_atomically(folder.path() / "broken.case", "words\n");
  EXPECT_EQ(check_cases(folder.path(), upper, {}).failures.size(), 1U);
}

}  // namespace
}  // namespace fusewise::test
