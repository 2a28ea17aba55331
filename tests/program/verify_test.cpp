#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "sample.h"

namespace fusewise::program {
namespace {

std::string refusal(const std::function<void(Program&)>& change) {
  Program program = sample_program();
  change(program);
  try {
    verify(program);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "valid";
}

TEST(VerifyProgram, SampleIsValid) {
  EXPECT_EQ(refusal([](Program&) {}), "valid");
  EXPECT_NO_THROW(verify(Program()));
}

TEST(VerifyProgram, NamesWhatIsWrong) {
  using testing::HasSubstr;
  EXPECT_THAT(refusal([](Program& p) { p.outputs[0].buffer = 3; }),
              HasSubstr("output 'y' has no buffer of its own"));
  EXPECT_THAT(refusal([](Program& p) { p.outputs[0].buffer = 99; }), HasSubstr("output 'y'"));
  EXPECT_THAT(refusal([](Program& p) { p.outputs[0].may_alias_inputs = {1}; }), HasSubstr("may alias"));
  EXPECT_THAT(refusal([](Program& p) { p.buffers[0].index = 4; }), HasSubstr("index that does not exist"));
  EXPECT_THAT(refusal([](Program& p) { p.buffers[1].bytes = 20; }), HasSubstr("differs from its constant's"));
  EXPECT_THAT(refusal([](Program& p) { p.buffers[2].bytes = Dim::symbol("batch"); }),
              HasSubstr("constant size"));
  EXPECT_THAT(refusal([](Program& p) { p.buffers[3].bytes = Dim::symbol("nobody"); }), HasSubstr("'nobody'"));
  EXPECT_THAT(refusal([](Program& p) { p.buffers[3].bytes = -4; }), HasSubstr("negative size"));
  EXPECT_THAT(refusal([](Program& p) { p.buffers[3].may_overwrite = {3}; }), HasSubstr("may overwrite"));
  EXPECT_THAT(refusal([](Program& p) { p.buffers[4].bytes = 24; }), HasSubstr("differs from its values"));
  EXPECT_THAT(refusal([](Program& p) { p.symbols.push_back("batch"); }), HasSubstr("twice"));
  EXPECT_THAT(refusal([](Program& p) { p.kernels[1].scratch_bytes = Dim::symbol("p7"); }), HasSubstr("'p7'"));
  EXPECT_THAT(refusal([](Program& p) { p.kernels[0].phases = 0; }), HasSubstr("phases"));
  EXPECT_THAT(refusal([](Program& p) { p.run_steps[0].kernel = 3; }),
              HasSubstr("kernel that does not exist"));
  EXPECT_THAT(refusal([](Program& p) { p.run_steps[0].buffers[0] = 7; }),
              HasSubstr("buffer that does not exist"));
  EXPECT_THAT(refusal([](Program& p) { p.run_steps[0].buffers.pop_back(); }), HasSubstr("gives 2 buffers"));
  EXPECT_THAT(refusal([](Program& p) { p.run_steps[0].parameters.pop_back(); }),
              HasSubstr("gives 1 parameters"));
  EXPECT_THAT(refusal([](Program& p) { p.run_steps[2].buffers.push_back(0); }), HasSubstr("no valid copy"));
  EXPECT_THAT(refusal([](Program& p) { p.guards[0].left = Dim::symbol("time"); }), HasSubstr("'time'"));
}

TEST(VerifyProgram, KeepsReadOnlyBuffersReadOnly) {
  using testing::HasSubstr;
  for (const BufferId target : {0u, 1u, 2u, 4u})
    EXPECT_THAT(refusal([&](Program& p) { p.run_steps[1].buffers[1] = target; }), HasSubstr("writes to"));
  EXPECT_THAT(refusal([](Program& p) { p.run_steps[2].buffers[1] = 0; }), HasSubstr("writes to"));
  EXPECT_THAT(refusal([](Program& p) { p.once_steps[0].buffers[1] = 3; }),
              HasSubstr("uses arena buffer 3 'sum'"));
  EXPECT_THAT(refusal([](Program& p) { p.once_steps[0].buffers[1] = 1; }),
              HasSubstr("writes to constant buffer"));
}

// The first two of four columns of y as a part of it, written by relu in place of all of it.
void write_part(Program& p) {
  Buffer part = make_buffer(BufferKind::view, none, 8 * Dim::symbol("batch"), "part");
  part.base = 5;
  part.offset = 8;
  part.reach = 16 * Dim::symbol("batch") - Dim(8);
  p.buffers.push_back(part);
  p.run_steps[1].buffers[1] = 7;
}

TEST(VerifyProgram, PartsOfBuffers) {
  using testing::HasSubstr;
  EXPECT_EQ(refusal(write_part), "valid");
  const auto with = [](const std::function<void(Program&)>& change) {
    return refusal([&](Program& p) {
      write_part(p);
      change(p);
    });
  };
  for (const BufferId base : {7u, 4u, 99u})
    EXPECT_THAT(with([&](Program& p) { p.buffers[7].base = base; }), HasSubstr("a part of something"));
  for (const BufferId base : {0u, 1u, 2u})
    EXPECT_THAT(with([&](Program& p) {
                  p.buffers[7].base = base;
                  p.buffers[7].reach = p.buffers[7].offset = 4;
                }),
                HasSubstr("writes to"));
  EXPECT_THAT(with([](Program& p) { p.buffers[7].offset = Dim::symbol("nobody"); }), HasSubstr("'nobody'"));
  EXPECT_THAT(with([](Program& p) {
                p.buffers[7].base = 6;
                p.buffers[7].reach = 9;
              }),
              HasSubstr("reaches beyond"));
  EXPECT_THAT(with([](Program& p) {
                p.buffers[7].base = 3;
                p.run_steps[1].buffers = {7, 5};
                std::swap(p.run_steps[0], p.run_steps[1]);
              }),
              HasSubstr("reads arena buffer 3 'sum' before anything has written it"));
  EXPECT_THAT(with([](Program& p) { p.run_steps[2].parameters = {4, 1}; }), HasSubstr("no valid copy"));
}

TEST(VerifyProgram, EverythingReadIsWrittenBefore) {
  using testing::HasSubstr;
  EXPECT_THAT(refusal([](Program& p) { std::swap(p.run_steps[0], p.run_steps[1]); }),
              HasSubstr("reads arena buffer 3 'sum' before anything has written it"));
  EXPECT_THAT(refusal([](Program& p) { p.run_steps.pop_back(); }),
              HasSubstr("no step writes output 'shape'"));
  // A kernel of which nothing is known may be the one that writes.
  EXPECT_EQ(refusal([](Program& p) { p.kernels[1].writes.clear(); }), "valid");
}

TEST(Program, NeededBuffersAndOnceResults) {
  Program program = sample_program();
  EXPECT_EQ(needed_in_runs(program), (std::vector<uint8_t>{1, 0, 1, 1, 1, 1, 1}));
  EXPECT_FALSE(has_once_results(program));
  program.buffers[2].content = bytes_of_values<float>({1, 2, 3, 4, 0, 0, 0, 0});
  EXPECT_TRUE(has_once_results(program));
}

}  // namespace
}  // namespace fusewise::program
