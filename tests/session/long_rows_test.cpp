// Reductions over very long rows in default mode: their errors stay of the size of the interpreter's, who adds up in
// blocks. One chain of additions for each lane would round thousands of times in a row.
#include <gtest/gtest.h>

#include "base/temporary_folder.h"
#include "export/onnx_builder.h"
#include "session/random_inputs.h"
#include "session/reference.h"
#include "session/session.h"

namespace fusewise::session {
namespace {

using graph::Tensor;

// The rows' LayerNorm and their sums, over `length` elements; of a symbolic length where it is 0.
void write_model(const std::filesystem::path& path, int64_t rows, int64_t length) {
  OnnxBuilder model;
  const auto columns = [&]() -> OnnxDim {
    if (length > 0) return length;
    return std::string("length");
  };
  model.input("x", DataType::float32, {rows, columns()});
  model.input("scale", DataType::float32, {columns()});
  model.input("bias", DataType::float32, {columns()});
  model.node("LayerNormalization", {"x", "scale", "bias"}, {{"axis", -1}}, "y");
  model.node("ReduceSum", {"x"}, {{"keepdims", 0}}, "sum");
  model.output("y", DataType::float32, {rows, columns()});
  model.output("sum", DataType::float32, {});
  model.opsets = {{"", 17}};
  model.write(path);
}

TEST(LongRows, ErrorsAreThoseOfBlocks) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "model.onnx";
  for (const int64_t stated : {int64_t{262144}, int64_t{65537}, int64_t{0}}) {
    write_model(path, 1, stated);
    const Model model = Model::load(path.string());
    for (const int64_t length : {int64_t{262144}, int64_t{65537}, int64_t{4097}, int64_t{4096}, int64_t{7}}) {
      if (stated != 0 && stated != length) continue;
      const std::vector<Tensor> inputs = {
          random_tensor("x", DataType::float32, {1, length}, 3, ValueRange{0.5, 1.5}, {}),
          random_tensor("scale", DataType::float32, {length}, 4, ValueRange{-1, 1}, {}),
          random_tensor("bias", DataType::float32, {length}, 5, ValueRange{-1, 1}, {})};
      const Reference reference(model.graph(), inputs);
      for (const int threads : {1, 2}) {
        SessionOptions options;
        options.use_cache = false;
        options.threads = threads;
        for (const OutputVerdict& verdict : reference.rounded_otherwise(Session(model, options).run(inputs)))
          EXPECT_TRUE(verdict.passed)
              << verdict.name << " of " << length << " on " << threads << ": " << verdict.note;
      }
    }
  }
}

}  // namespace
}  // namespace fusewise::session
