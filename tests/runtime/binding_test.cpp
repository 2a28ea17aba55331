#include "runtime/binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../program/sample.h"
#include "base/error.h"

namespace fusewise::runtime {
namespace {

using Shapes = std::vector<std::vector<int64_t>>;
using program::Guard;
using program::Program;
using testing::HasSubstr;

Program with_inputs(std::vector<Shape> shapes, std::vector<std::string> symbols) {
  Program program;
  program.symbols = std::move(symbols);
  for (size_t i = 0; i < shapes.size(); ++i)
    program.inputs.push_back({std::string(1, static_cast<char>('a' + i)), DataType::float32, shapes[i]});
  return program;
}

std::string refusal(const Program& program, const Shapes& shapes) {
  try {
    bind_shapes(program, segments_of(program), shapes);
  } catch (const UserError& error) {
    return error.what();
  }
  return "bound";
}

const Dim batch = Dim::symbol("batch");
const Dim seq = Dim::symbol("seq");

TEST(Binding, SymbolsFollowFromShapes) {
  const Program program = with_inputs({{batch, seq}, {seq, 3}}, {"batch", "seq"});
  EXPECT_EQ(solve_symbols(program, Shapes{{2, 7}, {7, 3}}), (SymbolValues{{"batch", 2}, {"seq", 7}}));
}

TEST(Binding, ConflictsNameInputDimensionAndValues) {
  const Program program = with_inputs({{batch, seq}, {seq, 3}}, {"batch", "seq"});
  EXPECT_EQ(refusal(program, {{2, 7}, {8, 3}}),
            "dimension 0 of input 'b' is 8, but dimension 1 of input 'a' is 7, and both are 'seq'");
  EXPECT_EQ(refusal(program, {{2, 7}, {7, 4}}),
            "dimension 1 of input 'b' must be 3, and the one given has 4");
  EXPECT_THAT(refusal(program, {{2, 7}, {7}}), HasSubstr("input 'b' needs 2 dimensions, [seq, 3]"));
  EXPECT_THAT(refusal(program, {{2, 7}}), HasSubstr("2 inputs, and 1 are given"));
  EXPECT_THAT(refusal(program, {{-1, 7}, {7, 3}}), HasSubstr("dimension 0 of input 'a' is negative: -1"));
}

TEST(Binding, ExpressionsAreSolvedAndChecked) {
  const Program program = with_inputs({{2 * batch + seq + 1}, {seq}, {batch * seq}}, {"batch", "seq"});
  EXPECT_EQ(solve_symbols(program, Shapes{{12}, {3}, {12}}), (SymbolValues{{"batch", 4}, {"seq", 3}}));
  EXPECT_THAT(refusal(program, {{12}, {3}, {13}}), HasSubstr("dimension 0 of input 'c'"));
  EXPECT_THAT(refusal(program, {{13}, {3}, {12}}), HasSubstr("cannot be"));
  EXPECT_THAT(refusal(program, {{2}, {3}, {0}}), HasSubstr("cannot be"));
}

TEST(Binding, SymbolsFromNowhereAreRefused) {
  const Program program = with_inputs({{batch}}, {"batch", "count"});
  EXPECT_THROW(solve_symbols(program, Shapes{{3}}), UnsupportedError);
}

TEST(Binding, Guards) {
  Program program = with_inputs({{batch}, {seq}}, {"batch", "seq"});
  program.guards = {{batch, Guard::Relation::multiple_of, 8, "the batch must be a multiple of 8"},
                    {seq, Guard::Relation::not_equal, 1, "seq must not be 1"},
                    {seq, Guard::Relation::at_most, batch, "seq must fit"}};
  EXPECT_EQ(refusal(program, {{8}, {8}}), "bound");
  EXPECT_EQ(refusal(program, {{9}, {8}}), "the batch must be a multiple of 8 (batch is 9, and 8 is 8)");
  EXPECT_THAT(refusal(program, {{8}, {1}}), HasSubstr("seq must not be 1"));
  EXPECT_THAT(refusal(program, {{8}, {9}}), HasSubstr("seq must fit"));
  EXPECT_EQ(refusal(program, {{0}, {0}}), "bound");
}

TEST(Binding, Sample) {
  const Program program = program::sample_program();
  const Binding binding = bind_shapes(program, segments_of(program), Shapes{{5, 4}});
  EXPECT_EQ(binding.output_shapes, (Shapes{{5, 4}, {2}}));
  EXPECT_EQ(binding.buffer_bytes, (std::vector<int64_t>{80, 16, 32, 80, 16, 80, 16}));
  EXPECT_EQ(binding.dims_values[4], (std::vector<int64_t>{5, 4}));
  EXPECT_EQ(binding.arena_bytes, 128);
  EXPECT_EQ(binding.arena_offsets[3], 0);
  EXPECT_EQ(binding.arena_offsets[2], -1);
}

TEST(Binding, HugeShapesAreErrors) {
  const Program program = program::sample_program();
  EXPECT_THAT(refusal(program, {{INT64_MAX / 2, 4}}), HasSubstr("64 bits"));
}

TEST(Binding, SizesThatDisagreeAreOurFault) {
  Program program = program::sample_program();
  program.buffers[5].bytes = 8 * batch;
  EXPECT_THROW(bind_shapes(program, segments_of(program), Shapes{{5, 4}}), InternalError);
}

TEST(Binding, SubByteTypes) {
  Program program = with_inputs({{batch}}, {"batch"});
  program.inputs[0].type = DataType::int4;
  EXPECT_EQ(bind_shapes(program, segments_of(program), Shapes{{5}}).input_bytes[0], 3);
  program.inputs[0].type = DataType::string;
  EXPECT_THROW(bind_shapes(program, segments_of(program), Shapes{{5}}), UnsupportedError);
}

}  // namespace
}  // namespace fusewise::runtime
