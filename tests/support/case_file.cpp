#include "support/case_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/error.h"

namespace fusewise::test {

namespace {

constexpr std::string_view case_mark = "=== ";
constexpr std::string_view block_mark = "--- ";

[[noreturn]] void fail(const std::string& file, int line, const std::string& message) {
  throw UserError(fmt::format("{}:{}: {}", file, line, message));
}

std::string_view trim_end(std::string_view text) {
  const size_t last = text.find_last_not_of(" \t\r");
  return last == std::string_view::npos ? std::string_view() : text.substr(0, last + 1);
}

// Whether a line of text could be taken for a mark, counting the backslashes already before it.
bool needs_escape(std::string_view line) {
  const size_t first = line.find_first_not_of('\\');
  if (first == std::string_view::npos) return false;
  const std::string_view rest = line.substr(first);
  return rest.starts_with(case_mark) || rest.starts_with(block_mark);
}

std::string_view unescape(std::string_view line) {
  return line.starts_with('\\') && needs_escape(line) ? line.substr(1) : line;
}

void drop_trailing_blank_lines(std::string& text) {
  while (text.ends_with("\n\n")) text.pop_back();
  if (text == "\n") text.clear();
}

class Parser {
 public:
  explicit Parser(const std::string& name) : name_(name) {}

  CaseFile parse(std::string_view text) {
    while (!text.empty()) {
      const size_t end = text.find('\n');
      ++line_;
      take_line(text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    finish_case();
    if (file_.cases.empty()) fail(name_, std::max(line_, 1), "the file has no cases");
    return std::move(file_);
  }

 private:
  void take_line(std::string_view line) {
    if (line.starts_with(case_mark)) return start_case(std::string(trim_end(line.substr(case_mark.size()))));
    if (line.starts_with(block_mark))
      return start_block(std::string(trim_end(line.substr(block_mark.size()))));
    if (!file_.cases.empty() && !file_.cases.back().blocks.empty()) {
      std::string& text = file_.cases.back().blocks.back().text;
      text += unescape(line);
      text += '\n';
      return;
    }
    const std::string_view content = trim_end(line);
    if (content.empty()) return;
    if (!content.starts_with('#'))
      fail(name_, line_, fmt::format("\"{}\" stands outside of any block", content));
    (file_.cases.empty() ? file_.comments : file_.cases.back().comments).emplace_back(content);
  }

  void start_case(std::string name) {
    finish_case();
    if (name.empty()) fail(name_, line_, "the case has no name");
    if (!names_.insert(name).second) fail(name_, line_, fmt::format("a second case named \"{}\"", name));
    file_.cases.push_back({std::move(name), {}, {}, line_});
  }

  void start_block(std::string name) {
    if (file_.cases.empty()) fail(name_, line_, "a block before the first case");
    Case& current = file_.cases.back();
    if (name.empty()) fail(name_, line_, "the block has no name");
    if (current.has(name)) fail(name_, line_, fmt::format("a second block \"{}\" in one case", name));
    current.blocks.push_back({std::move(name), {}});
  }

  void finish_case() {
    if (file_.cases.empty()) return;
    Case& current = file_.cases.back();
    if (current.blocks.empty())
      fail(name_, current.line, fmt::format("case \"{}\" has no blocks", current.name));
    for (CaseBlock& block : current.blocks) drop_trailing_blank_lines(block.text);
  }

  const std::string& name_;
  int line_ = 0;
  std::set<std::string> names_;
  CaseFile file_;
};

void print_block(std::string& out, const CaseBlock& block) {
  out += fmt::format("{}{}\n", block_mark, block.name);
  std::string_view text = block.text;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (needs_escape(line)) out += '\\';
    out += line;
    out += '\n';
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

}  // namespace

bool Case::has(std::string_view block) const {
  return std::ranges::any_of(blocks, [&](const CaseBlock& candidate) { return candidate.name == block; });
}

const std::string& Case::text(std::string_view block) const {
  for (const CaseBlock& candidate : blocks) {
    if (candidate.name == block) return candidate.text;
  }
  throw UserError(fmt::format("case \"{}\" has no block \"{}\"", name, block));
}

std::string Case::word(std::string_view block, std::string_view otherwise) const {
  if (!has(block)) return std::string(otherwise);
  std::string_view value = text(block);
  while (value.ends_with('\n')) value.remove_suffix(1);
  return std::string(trim_end(value));
}

CaseFile parse_case_file(std::string_view text, const std::string& name) { return Parser(name).parse(text); }

std::string print_case_file(const CaseFile& file) {
  std::string out;
  for (const std::string& comment : file.comments) out += comment + "\n";
  for (const Case& test_case : file.cases) {
    if (!out.empty()) out += '\n';
    out += fmt::format("{}{}\n", case_mark, test_case.name);
    for (const std::string& comment : test_case.comments) out += comment + "\n";
    for (const CaseBlock& block : test_case.blocks) print_block(out, block);
  }
  return out;
}

}  // namespace fusewise::test
