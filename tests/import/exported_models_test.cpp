// Imports every model of the shared collections, checks the graphs, and prints what is not supported.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/verifier.h"
#include "import/import.h"

namespace fusewise {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> models_in(const char* folder) {
  std::vector<fs::path> models;
  const fs::path path = fs::path(FUSEWISE_TESTS) / "../../shared/models" / folder;
  if (!fs::is_directory(path)) {
    fmt::print("left out: {} is not there\n", path.string());
    return models;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(path))
    if (entry.path().extension() == ".onnx") models.push_back(entry.path());
  std::ranges::sort(models);
  return models;
}

struct Counts {
  int imported = 0, unsupported = 0;
};

Counts import_all(const char* folder) {
  Counts counts;
  for (const fs::path& path : models_in(folder)) {
    try {
      const graph::Graph graph = import_onnx(path.string(), {.allow_missing_external_data = true});
      graph::verify(graph);
      fmt::print("{}: {} nodes\n", path.filename().string(), graph.size());
      ++counts.imported;
    } catch (const UnsupportedError& e) {
      fmt::print("{}\n", e.what());
      EXPECT_FALSE(e.items.empty()) << path;
      ++counts.unsupported;
    } catch (const std::exception& e) {
      ADD_FAILURE() << path << ": " << e.what();
    }
  }
  fmt::print("{}: {} imported, {} unsupported\n", folder, counts.imported, counts.unsupported);
  return counts;
}

TEST(ExportedModels, AllImportOrSayWhatIsMissing) { import_all("exported"); }
TEST(ExportedModels, RealModelsImportOrSayWhatIsMissing) { import_all("real"); }
TEST(ExportedModels, OldZooModelsImportOrSayWhatIsMissing) { import_all("structure"); }

}  // namespace
}  // namespace fusewise
