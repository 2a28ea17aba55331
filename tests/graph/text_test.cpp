#include "graph/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "base/error.h"
#include "graph/builder.h"
#include "graph/verifier.h"
#include "support/case_file.h"

namespace fusewise::graph {
namespace {

using ::testing::HasSubstr;

constexpr DataType f32 = DataType::float32;

template <class T>
std::vector<std::byte> bytes_of_values(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

void expect_equal(const Graph& a, const Graph& b) {
  EXPECT_EQ(a.name, b.name);
  ASSERT_EQ(a.size(), b.size());
  for (NodeId id = 0; id < a.size(); ++id) {
    EXPECT_EQ(a.node(id).op, b.node(id).op);
    EXPECT_EQ(a.node(id).operands, b.node(id).operands);
    EXPECT_TRUE(a.node(id).attributes == b.node(id).attributes) << print_node(a, id);
    EXPECT_EQ(a.node(id).results, b.node(id).results);
    EXPECT_EQ(a.node(id).sources, b.node(id).sources);
  }
  ASSERT_EQ(a.constants.size(), b.constants.size());
  for (size_t i = 0; i < a.constants.size(); ++i) {
    EXPECT_EQ(a.constants[i].type, b.constants[i].type);
    EXPECT_EQ(a.constants[i].name, b.constants[i].name);
    EXPECT_TRUE(std::ranges::equal(a.constants[i].bytes, b.constants[i].bytes)) << i;
  }
  ASSERT_EQ(a.inputs.size(), b.inputs.size());
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    EXPECT_EQ(a.inputs[i].name, b.inputs[i].name);
    EXPECT_EQ(a.inputs[i].node, b.inputs[i].node);
  }
  ASSERT_EQ(a.outputs.size(), b.outputs.size());
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    EXPECT_EQ(a.outputs[i].name, b.outputs[i].name);
    EXPECT_EQ(a.outputs[i].value, b.outputs[i].value);
  }
  ASSERT_EQ(a.model_nodes.size(), b.model_nodes.size());
  for (size_t i = 0; i < a.model_nodes.size(); ++i) {
    EXPECT_EQ(a.model_nodes[i].name, b.model_nodes[i].name);
    EXPECT_EQ(a.model_nodes[i].op_type, b.model_nodes[i].op_type);
    EXPECT_EQ(a.model_nodes[i].first_output, b.model_nodes[i].first_output);
  }
}

// Every operation, odd names, symbols that need quotes.
Graph everything() {
  Graph graph;
  graph.name = "a \"name\" with \\ and \n and \xc3\xa9";
  graph.model_nodes = {{"", "Add", "out:0"}, {"x/\ty\x7f", "com.microsoft.Gelu", ""}};
  GraphBuilder b(graph);
  const Dim n = Dim::symbol("n"), odd = Dim::symbol("a, b](");
  const Value x = b.input("x", {f32, {n, 8, 5, 5}}),
              y = b.input("", {f32, {odd, max(n, odd), floor_div(n, 2)}});
  std::swap(graph.inputs[0], graph.inputs[1]);
  b.set_source(1);
  const Value w = b.constant({f32, {4, 2, 3, 3}}, std::vector<std::byte>(4 * 2 * 9 * 4), "w");
  const Value c = b.convolution(x, w, {{1, 2}, {1, 1}, {1, -1}, {0, 3}, 4});
  b.set_sources(std::vector<uint32_t>{0, 1});
  const Value p = b.window_reduce(c, {Combine::min, {2, 2}, {1, 2}, {1, 1}, {0, 1}, {0, 0}});
  const Value t = b.transpose(p, {3, 0, 1, 2});
  const Value r = b.reduce(t, Combine::product, {0, 3}, true);
  const Value one = b.scalar(f32, -0.0);
  const Value padded = b.pad(r, one, {0, n, 0, -1}, {1, 2, 3, 1});
  const Value m = b.map_broadcast(ScalarOp::max, {padded, b.scalar(f32, 1e-40)});
  const Value cmp = b.map(ScalarOp::less_equal, {m, m});
  const Value selected = b.map(ScalarOp::select, {cmp, m, b.map(ScalarOp::exp, {m})});
  const Value half = b.cast(selected, DataType::bfloat16);
  const Value i = b.iota({DataType::int64, {3, n}}, 1);
  const Value g = b.gather(y, i, 2);
  const Value s = b.slice(g, {0, 1, 2, n - 1}, {1, 2, -1, -1}, {odd, 1, 3, n});
  b.output(b.matmul(s, b.transpose(s, {0, 1, 3, 2})), "s");
  b.output(b.concat({half, half}, 3), "h");
  b.output(b.reshape(b.dims({n, odd * n + 3, 4}), {3, 1}), "d");
  b.output(b.dim(n - 1), "");
  return graph;
}

TEST(GraphText, RoundTripsEveryOperation) {
  const Graph graph = everything();
  verify(graph);
  PrintOptions options;
  options.inline_elements = 1000;
  const std::string text = print(graph, options);
  const Graph parsed = parse(text);
  expect_equal(graph, parsed);
  verify(parsed);
  EXPECT_EQ(print(parsed, options), text);
}

TEST(GraphText, LargeConstantsAreFoundByHash) {
  const Graph graph = everything();
  const std::string text = print(graph);
  EXPECT_THAT(text, HasSubstr("= hash:"));
  try {
    parse(text);
    ADD_FAILURE();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("leaves out the data of constant 'w'"));
  }
  ParseOptions options;
  options.resolve = [&](const MissingConstant& missing) {
    EXPECT_EQ(missing.name, "w");
    EXPECT_EQ(missing.hash, hash_bytes(graph.constants[0].bytes));
    return graph.constants[0];
  };
  expect_equal(graph, parse(text, options));
  options.resolve = [&](const MissingConstant&) { return graph.constants[1]; };
  EXPECT_THROW(parse(text, options), UserError);
  ParseOptions zeros;
  zeros.zeros_stand_in = true;
  expect_equal(graph, parse(text, zeros));  // the weights happen to be zeros
  zeros.most_zero_bytes = 100;
  EXPECT_THROW(parse(text, zeros), UserError);
}

TEST(GraphText, ConstantsKeepEveryBit) {
  Graph graph;
  GraphBuilder b(graph);
  b.constant({f32, {8}}, bytes_of_values<uint32_t>(
                             {0, 0x80000000, 1, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x3dcccccd}));
  b.constant({DataType::float64, {3}},
             bytes_of_values<uint64_t>({1, 0x7ff0000000000001, 0x3fb999999999999a}));
  b.constant({DataType::float16, {4}}, bytes_of_values<uint16_t>({1, 0x7e01, 0xfc00, 0x3555}));
  b.constant({DataType::bfloat16, {4}}, bytes_of_values<uint16_t>({1, 0x7fc1, 0xff80, 0x3eab}));
  b.constant({DataType::int8, {3}}, bytes_of_values<int8_t>({-128, 0, 127}));
  b.constant({DataType::uint64, {2}}, bytes_of_values<uint64_t>({0, UINT64_MAX}));
  b.constant({DataType::int64, {2}}, bytes_of_values<int64_t>({INT64_MIN, INT64_MAX}));
  b.constant({DataType::boolean, {2}}, bytes_of_values<uint8_t>({0, 1}));
  b.constant({DataType::int4, {3}}, bytes_of_values<uint8_t>({0x1f, 0x0a}));
  b.constant({DataType::float8e4m3fn, {2}}, bytes_of_values<uint8_t>({0xff, 0x01}));
  b.constant({f32, {0, 5}}, std::vector<std::byte>());
  expect_equal(graph, parse(print(graph)));
}

TEST(GraphText, RandomConstantsKeepEveryBit) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 50; ++round) {
    Graph graph;
    GraphBuilder b(graph);
    for (const DataType type :
         {f32, DataType::float64, DataType::float16, DataType::bfloat16, DataType::int32}) {
      std::vector<uint64_t> words(7);
      for (uint64_t& word : words) word = random();
      std::vector<std::byte> bytes = bytes_of_values(words);
      bytes.resize(static_cast<size_t>(7 * bytes_of(type)));
      b.constant({type, {7}}, bytes);
    }
    expect_equal(graph, parse(print(graph)));
  }
}

// Whatever the text is, parsing ends in a valid graph or in an error for the user.
TEST(GraphText, SurvivesNonsense) {
  const std::string text = print(everything());
  std::mt19937 random(11);
  const std::string characters = "[](){}%=:,.\"\\#-+*0123456789abx \n\0\xff";
  int accepted = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string broken = text;
    for (unsigned edits = random() % 3 + 1; edits > 0; --edits) {
      const size_t at = random() % broken.size();
      switch (random() % 4) {
        case 0:
          broken[at] = characters[random() % characters.size()];
          break;
        case 1:
          broken.erase(at, random() % 20);
          break;
        case 2:
          broken.insert(at, broken.substr(random() % broken.size(), random() % 20));
          break;
        default:
          broken.insert(at, std::to_string(static_cast<int64_t>(random()) << (random() % 32)));
          break;
      }
    }
    ParseOptions options;
    options.zeros_stand_in = true;
    options.most_zero_bytes = 1 << 20;
    try {
      verify(parse(broken, options));
      ++accepted;
    } catch (const UserError&) {
    } catch (const UnsupportedError&) {
    }
  }
  EXPECT_GT(accepted, 100);
}

TEST(GraphText, PrintsALongChain) {
  Graph graph;
  GraphBuilder b(graph);
  Value x = b.input("x", {f32, {4}});
  for (int i = 0; i < 200000; ++i) x = b.map(ScalarOp::neg, {x});
  b.output(x, "y");
  EXPECT_EQ(parse(print(graph)).size(), 200001u);
}

TEST(GraphText, Cases) {
  test::run_cases("graph/text.case", [](const test::Case& c) { return print(parse(c.text("input"))); });
}

}  // namespace
}  // namespace fusewise::graph
