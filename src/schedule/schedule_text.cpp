#include "schedule/schedule_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "base/error.h"

namespace fusewise::schedule {

namespace {

constexpr std::string_view placements[] = {"registers", "scratch", "memory"};
constexpr std::string_view reuses[] = {"keep", "recompute", "slide", "carry"};

}  // namespace

std::string to_text(const StageChoice& s) {
  std::string text = fmt::format("stage %{} ", s.node);
  text +=
      s.parent < 0 ? fmt::format("root phase={}", s.phase) : fmt::format("in={} depth={}", s.parent, s.depth);
  text += fmt::format(" {}", placements[static_cast<size_t>(s.placement)]);
  if (s.partial) text += " partial";
  if (s.reuse != Reuse::keep) text += fmt::format(" {}", reuses[static_cast<size_t>(s.reuse)]);
  if (s.reuse == Reuse::slide) text += fmt::format("={}", s.slide_axis);
  text += " loops=[";
  for (size_t i = 0; i < s.loops.size(); ++i)
    text += fmt::format("{}{}:{}", i ? " " : "", s.loops[i].axis, s.loops[i].tile);
  text += ']';
  if (s.parent < 0) text += fmt::format(" grid={}", s.grid_loops);
  if (s.thread_loops > 0) text += fmt::format(" threads={}", s.thread_loops);
  if (s.team != 1) text += fmt::format(" team={}", s.team);
  return text + fmt::format(" vector={} storage=[{}]", s.vector_axis, fmt::join(s.storage, " "));
}

std::string to_text(const Schedule& schedule) {
  std::string text = fmt::format("order block={} lanes={}", schedule.order.block, schedule.order.lanes);
  if (schedule.threads > 1) text += fmt::format(" threads={}", schedule.threads);
  text += '\n';
  for (const StageChoice& s : schedule.stages) text += to_text(s) + '\n';
  return text;
}

namespace {

class Line {
 public:
  Line(std::string_view text, int number) : text_(text), whole_(text), number_(number) {}

  [[noreturn]] void fail() const {
    throw UserError(fmt::format("line {} is no part of a schedule: {}", number_, whole_));
  }
  void skip_spaces() {
    while (!text_.empty() && text_[0] == ' ') text_.remove_prefix(1);
  }
  bool at_end() {
    skip_spaces();
    return text_.empty();
  }
  bool take(std::string_view word) {
    skip_spaces();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) fail();
  }
  template <class Number>
  Number number() {
    Number value = 0;
    const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (error != std::errc()) fail();
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return value;
  }

 private:
  std::string_view text_, whole_;
  int number_;
};

StageChoice parse_stage(Line& line) {
  StageChoice s;
  line.expect("%");
  s.node = line.number<NodeId>();
  if (line.take("root")) {
    line.expect("phase=");
    s.phase = line.number<int>();
  } else {
    line.expect("in=");
    s.parent = line.number<int>();
    line.expect("depth=");
    s.depth = line.number<int>();
  }
  if (line.take("registers"))
    s.placement = Placement::registers;
  else if (line.take("scratch"))
    s.placement = Placement::scratch;
  else
    line.expect("memory");
  s.partial = line.take("partial");
  if (line.take("recompute")) {
    s.reuse = Reuse::recompute;
  } else if (line.take("carry")) {
    s.reuse = Reuse::carry;
  } else if (line.take("slide=")) {
    s.reuse = Reuse::slide;
    s.slide_axis = line.number<int>();
  }
  line.expect("loops=[");
  while (!line.take("]")) {
    LoopChoice loop;
    loop.axis = line.number<int>();
    line.expect(":");
    loop.tile = line.number<int64_t>();
    line.skip_spaces();
    s.loops.push_back(loop);
  }
  if (s.parent < 0) {
    line.expect("grid=");
    s.grid_loops = line.number<int>();
  }
  if (line.take("threads=")) s.thread_loops = line.number<int>();
  if (line.take("team=")) s.team = line.number<int>();
  line.expect("vector=");
  s.vector_axis = line.number<int>();
  line.expect("storage=[");
  while (!line.take("]")) {
    s.storage.push_back(line.number<int>());
    line.skip_spaces();
  }
  return s;
}

}  // namespace

Schedule parse_schedule(std::string_view text) {
  Schedule schedule;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    Line line(text.substr(0, end), number);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.at_end() || line.take("#")) continue;
    if (line.take("order block=")) {
      schedule.order.block = line.number<int64_t>();
      line.expect("lanes=");
      schedule.order.lanes = line.number<int>();
      if (line.take("threads=")) schedule.threads = line.number<int>();
    } else {
      line.expect("stage ");
      schedule.stages.push_back(parse_stage(line));
    }
    if (!line.at_end()) line.fail();
  }
  return schedule;
}

}  // namespace fusewise::schedule
