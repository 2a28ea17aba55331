// Aligned text tables for the command line: columns two spaces apart, numbers to the right, no trailing
// spaces. Widths are counted in characters of UTF-8, not in bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace fusewise {

class TextTable {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // A row may be shorter than the columns; what is missing stays blank.
  void add_row(std::vector<std::string> cells);
  // A line of dashes, before a row of totals for example.
  void add_rule();

  size_t row_count() const { return rows_.size(); }
  // Every line ends with a newline. The title line is left out when all titles are empty.
  std::string to_string(int indent = 0) const;

 private:
  struct Row {
    bool is_rule = false;
    std::vector<std::string> cells;
  };
  std::vector<size_t> column_widths() const;
  void append_line(std::string& out, const std::vector<std::string>& cells, const std::vector<size_t>& widths,
                   int indent) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

// The number of UTF-8 characters of a text.
size_t display_width(std::string_view text);

}  // namespace fusewise
