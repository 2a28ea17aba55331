// Text tables and log channels.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text_table.h"

namespace fusewise {
namespace {

using Align = TextTable::Align;

TEST(TextTable, AlignsColumns) {
  TextTable table({{"kernel"}, {"us", Align::right}, {"note"}});
  table.add_row({"conv_add_relu", "12.5", "memory"});
  table.add_row({"dot", "1234.0"});
  table.add_rule();
  table.add_row({"", "1246.5", ""});
  EXPECT_EQ(table.row_count(), 4U);
  EXPECT_EQ(table.to_string(),
            "kernel             us  note\n"
            "conv_add_relu    12.5  memory\n"
            "dot            1234.0\n"
            "-------------  ------  ------\n"
            "               1246.5\n");
}

TEST(TextTable, WithoutTitlesOrRows) {
  TextTable plain({{""}, {"", Align::right}});
  EXPECT_EQ(plain.to_string(), "");
  plain.add_row({"a", "1"});
  plain.add_row({"bc", "23"});
  EXPECT_EQ(plain.to_string(2), "  a    1\n  bc  23\n");
}

TEST(TextTable, CountsCharactersNotBytes) {
  TextTable table({{"name"}, {"n", Align::right}});
  table.add_row({"Größe", "1"});
  table.add_row({"width", "2"});
  EXPECT_EQ(table.to_string(), "name   n\nGröße  1\nwidth  2\n");
  EXPECT_EQ(display_width("λ→"), 2U);
}

TEST(TextTable, RefusesTooManyCells) {
  TextTable table({{"one"}});
  EXPECT_THROW(table.add_row({"a", "b"}), InternalError);
}

TEST(LogChannels, ListsChannels) {
  const LogChannels channels(" fusion, codegen,,");
  EXPECT_TRUE(channels.enabled("fusion"));
  EXPECT_TRUE(channels.enabled("codegen"));
  EXPECT_FALSE(channels.enabled("code"));
  EXPECT_FALSE(channels.enabled(""));
  EXPECT_FALSE(LogChannels("").enabled("fusion"));
  EXPECT_TRUE(LogChannels("import,all").enabled("fusion"));
}

TEST(Log, WritesOneLine) {
  testing::internal::CaptureStderr();
  write_log_line("fusion", "merged 3 regions");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "[fusion] merged 3 regions\n");
}

}  // namespace
}  // namespace fusewise
