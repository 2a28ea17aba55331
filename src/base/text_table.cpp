#include "base/text_table.h"

#include <algorithm>

#include "base/error.h"

namespace fusewise {

namespace {

constexpr std::string_view column_gap = "  ";

}  // namespace

size_t display_width(std::string_view text) {
  // Bytes of the form 10xxxxxx continue a character.
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

void TextTable::add_row(std::vector<std::string> cells) {
  check(cells.size() <= columns_.size(), "a table row has more cells than the table has columns");
  rows_.push_back({false, std::move(cells)});
}

void TextTable::add_rule() { rows_.push_back({true, {}}); }

std::vector<size_t> TextTable::column_widths() const {
  std::vector<size_t> widths;
  for (const Column& column : columns_) widths.push_back(display_width(column.title));
  for (const Row& row : rows_) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row.cells[i]));
    }
  }
  return widths;
}

void TextTable::append_line(std::string& out, const std::vector<std::string>& cells,
                            const std::vector<size_t>& widths, int indent) const {
  std::string line(static_cast<size_t>(indent), ' ');
  for (size_t i = 0; i < columns_.size(); ++i) {
    const std::string_view cell = i < cells.size() ? std::string_view(cells[i]) : std::string_view();
    const size_t padding = widths[i] - display_width(cell);
    if (i > 0) line += column_gap;
    if (columns_[i].align == Align::right) line.append(padding, ' ');
    line += cell;
    if (columns_[i].align == Align::left) line.append(padding, ' ');
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out += line;
  out += '\n';
}

std::string TextTable::to_string(int indent) const {
  const std::vector<size_t> widths = column_widths();
  std::string out;
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  const bool has_titles =
      std::ranges::any_of(titles, [](const std::string& title) { return !title.empty(); });
  if (has_titles) append_line(out, titles, widths, indent);
  for (const Row& row : rows_) {
    if (!row.is_rule) {
      append_line(out, row.cells, widths, indent);
      continue;
    }
    std::vector<std::string> dashes;
    for (size_t width : widths) dashes.emplace_back(width, '-');
    append_line(out, dashes, widths, indent);
  }
  return out;
}

}  // namespace fusewise
