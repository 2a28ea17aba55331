// A model file. Nothing of it is read before something is asked, so that a warm start, for which its identity is
// enough, leaves the weights alone.
#pragma once

#include <memory>
#include <string>

#include "base/hash.h"
#include "graph/graph.h"
#include "import/import.h"
#include "session/cache.h"

namespace fusewise::session {

class Model {
 public:
  // UserError when there is no such file.
  static Model load(const std::string& path, const ImportOptions& options = {});

  const std::string& path() const;
  // Imports the model at the first call; any number of threads may call.
  const graph::Graph& graph() const;
  double import_ms() const;          // 0 while it is not imported
  // Of all the files that the model consists of.
  Hash128 content_hash(const Cache& cache) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace fusewise::session
