// A model file. Nothing of it is read before something is asked, so that a warm start, for which its identity is
// enough, leaves the weights alone.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/hash.h"
#include "graph/graph.h"
#include "import/import.h"
#include "session/cache.h"

namespace fusewise::session {

struct ModelOptions {
  ImportOptions import = {};
  std::vector<std::string> extra_outputs = {};  // tensors of the file to deliver beside its outputs
};

class Model {
 public:
  // UserError when there is no such file.
  static Model load(const std::string& path, const ModelOptions& options = {});

  const std::string& path() const;
  // Imports the model at the first call; any number of threads may call.
  const graph::Graph& graph() const;
  double import_ms() const;  // 0 while it is not imported
  // Of all the files that the model consists of, and of what is asked of it.
  Hash128 content_hash(const Cache& cache) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace fusewise::session
