#include "cli/verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text_table.h"
#include "cli/console.h"

namespace fusewise::cli {
namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;
using session::KernelVerdict;
using session::OutputVerdict;

std::string place_of(const OutputVerdict& verdict) {
  if (verdict.worst_index < 0) return "-";
  std::vector<int64_t> place(verdict.shape.size());
  int64_t rest = verdict.worst_index;
  for (size_t d = place.size(); d-- > 0;) {
    place[d] = rest % verdict.shape[d];
    rest /= verdict.shape[d];
  }
  return graph::to_string(place);
}

Json json_of(const OutputVerdict& v) {
  return {{"name", v.name},
          {"dtype", name_of(v.type)},
          {"shape", v.shape},
          {"passed", v.passed},
          {"elements", v.elements},
          {"differing", v.differing},
          {"unbounded", v.unbounded},
          {"max_abs", json_number(v.max_absolute)},
          {"max_rel", json_number(v.max_relative)},
          {"tolerance", json_number(v.tolerance)},
          {"worst_index", v.worst_index},
          {"value", json_number(v.actual)},
          {"expected", json_number(v.expected)},
          {"median_share", json_number(v.median_share)},
          {"max_share", json_number(v.max_share)},
          {"spread", json_number(v.spread)},
          {"spread_share", json_number(v.spread_share)},
          {"note", v.note}};
}

bool is_off(const KernelVerdict& kernel) { return !kernel.verdict.passed; }

}  // namespace

std::string verdict_table(const std::string& what, std::span<const OutputVerdict> verdicts) {
  TextTable table({{what},
                   {"verdict"},
                   {"max abs", Align::right},
                   {"max rel", Align::right},
                   {"tolerance", Align::right},
                   {"worst at"},
                   {"value", Align::right},
                   {"expected", Align::right},
                   {"median share", Align::right},
                   {"max share", Align::right},
                   {"own errors", Align::right}});
  std::string notes;
  for (const OutputVerdict& v : verdicts) {
    table.add_row({v.name, v.passed ? "agrees" : "DIFFERS", fmt::format("{:.3g}", v.max_absolute),
                   fmt::format("{:.3g}", v.max_relative), fmt::format("{:.3g}", v.tolerance), place_of(v),
                   fmt::format("{:.9g}", v.actual), fmt::format("{:.9g}", v.expected),
                   fmt::format("{:.3g}", v.median_share), fmt::format("{:.3g}", v.max_share),
                   v.spread > 0 ? fmt::format("x {:.3g}", v.spread) : "-"});
    if (!v.note.empty()) notes += fmt::format("{} '{}': {}\n", what, v.name, v.note);
    if (v.differing > 0)
      notes += fmt::format("{} '{}': {} of {} elements are outside of their tolerance\n", what, v.name,
                           v.differing, v.elements);
    if (v.unbounded > 0)
      notes += fmt::format(
          "{} '{}': no bound is known for {} of {} elements; they are held to the interpreter's values "
          "instead\n",
          what, v.name, v.unbounded, v.elements);
  }
  return table.to_string() + notes;
}

Json verdict_json(std::span<const OutputVerdict> verdicts) {
  Json list = Json::array();
  for (const OutputVerdict& v : verdicts) list.push_back(json_of(v));
  return list;
}

std::string kernel_words(std::span<const KernelVerdict> verdicts) {
  const auto first = std::find_if(verdicts.begin(), verdicts.end(), is_off);
  const auto count = [&](auto&& fits) { return std::count_if(verdicts.begin(), verdicts.end(), fits); };
  if (first == verdicts.end())
    return fmt::format("all {} values that kernels store agree with the interpreter's\n", verdicts.size());
  return fmt::format("the first kernel that is off: {}{}\nit computes {}\n{}{} of {} stored values differ\n",
                     first->kernel, first->once ? ", when the program is loaded" : "",
                     fmt::join(first->nodes, ", "), verdict_table("value", {&first->verdict, 1}),
                     count(is_off), verdicts.size());
}

Json kernel_json(std::span<const KernelVerdict> verdicts) {
  Json kernels = Json::array();
  const auto to_json = [](const KernelVerdict& v) {
    return Json{{"kernel", v.kernel},
                {"nodes", v.nodes},
                {"once", v.once},
                {"phases", v.phases},
                {"value", json_of(v.verdict)}};
  };
  for (const KernelVerdict& v : verdicts) kernels.push_back(to_json(v));
  const auto first = std::find_if(verdicts.begin(), verdicts.end(), is_off);
  return {{"first_off", first == verdicts.end() ? Json() : to_json(*first)}, {"kernels", kernels}};
}

}  // namespace fusewise::cli
