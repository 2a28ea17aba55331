#include "zoo/zoo.h"

#include <fmt/core.h>

#include "base/error.h"
#include "zoo/list.h"

namespace fusewise {

std::vector<ZooEntry> zoo_models() {
  std::vector<ZooEntry> entries;
  for (const zoo::Row& row : zoo::rows) entries.push_back({row.name, row.description});
  return entries;
}

OnnxBuilder build_zoo(std::string_view name) {
  std::string names;
  for (const zoo::Row& row : zoo::rows) {
    if (row.name == name) {
      OnnxBuilder model = row.build(row.tiny);
      model.name = row.name;
      return model;
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  }
  throw UserError(fmt::format("there is no zoo model '{}'; there are: {}", name, names));
}

void write_zoo(std::string_view name, const std::filesystem::path& path) { build_zoo(name).write(path); }

}  // namespace fusewise
