// Sessions in strict mode against the interpreter, over sets of inputs for one model.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "export/onnx_builder.h"
#include "graph/interpreter/interpreter.h"
#include "runtime/executable.h"
#include "session/session.h"
#include "session/verify.h"

namespace fusewise::session {

inline graph::Tensor floats(std::vector<int64_t> shape, const std::vector<float>& values) {
  return graph::Tensor::from(DataType::float32, std::move(shape), values);
}
inline graph::Tensor ints(std::vector<int64_t> shape, const std::vector<int64_t>& values) {
  return graph::Tensor::from(DataType::int64, std::move(shape), values);
}

class ExactSession : public testing::Test {
 protected:
  const Model& write(const OnnxBuilder& builder) {
    const std::filesystem::path path = folder_.path() / "model.onnx";
    builder.write(path);
    model_.emplace(Model::load(path.string()));
    return *model_;
  }
  static SessionOptions strict(int threads = 1) {
    SessionOptions options;
    options.threads = threads;
    options.numerics = compiler::Numerics::strict;
    options.use_cache = false;
    return options;
  }
  // Every set of inputs, twice and in both directions, so that sizes grow and shrink.
  void expect_exact(const OnnxBuilder& builder, const std::vector<std::vector<graph::Tensor>>& cases) {
    write(builder);
    for (const bool guarded : {false, true}) {
      SessionOptions options = strict(2);
      options.poison = guarded;
      if (guarded) options.guard_pages = runtime::GuardPages::after;
      const Session session(*model_, options);
      for (size_t i = 0; i < 2 * cases.size(); ++i) {
        const std::vector<graph::Tensor>& inputs = cases[i < cases.size() ? i : 2 * cases.size() - 1 - i];
        SCOPED_TRACE(i);
        expect_exact_run(session, inputs);
      }
    }
  }
  void expect_exact_run(const Session& session, const std::vector<graph::Tensor>& inputs) {
    const graph::Graph& graph = model_->graph();
    const std::vector<graph::Tensor> expected = graph::interpret(graph, inputs), actual = session.run(inputs);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t k = 0; k < actual.size(); ++k) {
      const OutputVerdict verdict = compare_exactly(graph.outputs[k].name, expected[k], actual[k]);
      EXPECT_TRUE(verdict.passed) << verdict.name << " " << verdict.note << " "
                                  << graph::to_string(actual[k].shape) << " "
                                  << graph::to_string(expected[k].shape);
    }
  }
  std::string error_of(const std::vector<graph::Tensor>& inputs) {
    try {
      Session(*model_, strict()).run(inputs);
    } catch (const UserError& error) {
      return error.what();
    }
    return "none";
  }

  TemporaryFolder folder_;
  std::optional<Model> model_;
};

}  // namespace fusewise::session
