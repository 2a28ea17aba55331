#include "base/near_names.h"

#include <algorithm>
#include <utility>

namespace fusewise {

int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    int diagonal = row[0];
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::vector<std::string> near_names(std::string_view wanted, std::span<const std::string> names,
                                    size_t most) {
  const int allowed = std::max(2, static_cast<int>(wanted.size()) / 4);
  constexpr size_t telling = 3;  // characters; shorter parts are in many names
  std::vector<std::pair<int, std::string>> found;
  for (const std::string& name : names) {
    const size_t apart =
        name.size() > wanted.size() ? name.size() - wanted.size() : wanted.size() - name.size();
    const int distance = static_cast<int>(apart) <= allowed ? edit_distance(wanted, name) : allowed + 1;
    const bool within = wanted.size() >= telling && name.find(wanted) != std::string::npos;
    const bool around = name.size() >= telling && wanted.find(name) != std::string_view::npos;
    if (distance <= allowed)
      found.emplace_back(distance, name);
    else if (within || around)
      found.emplace_back(allowed + 1 + static_cast<int>(apart), name);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> result;
  for (size_t i = 0; i < std::min(most, found.size()); ++i) result.push_back(std::move(found[i].second));
  return result;
}

std::string did_you_mean(std::string_view wanted, std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : near_names(wanted, names)) text += (text.empty() ? "'" : ", '") + name + "'";
  return text.empty() ? text : "did you mean " + text + "?";
}

}  // namespace fusewise
