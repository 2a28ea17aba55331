// Options of the commands that compile: what to compile for and how.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/shared_options.h"
#include "session/session.h"

namespace fusewise::cli {

struct CompileFlags {
  std::string model;
  InputOptions inputs;
  ThreadOptions threads;
  std::string target = "cpu", machine_file, numerics = "default", fusion = "on", search = "auto";
  std::string precision = "model", cache, plan_file;
  std::vector<std::string> disabled_passes, in_place;
  std::vector<std::string> output_tensors;  // of commands that have it
  bool static_shapes = false, poison = false;

  void declare(Parser& parser);
  void declare_compilation(Parser& parser);  // all but the model and its inputs
  // Warnings, and progress on a terminal, go to the console, which must outlive the options. UsageError, UserError.
  session::SessionOptions options(Console& console) const;
};

// A model, specialised for the inputs at hand where it must be, and those inputs where that made them.
struct Chosen {
  session::Model model;
  std::optional<std::vector<graph::Tensor>> inputs;
  SymbolValues usual = {};  // sizes that the flags give, for SessionOptions::usual
};
// Calls `use` with the model of the flags. When it is not supported because shapes depend on data, tries again with
// ever more of the inputs put into the import, and warns of it.
void with_model(const CompileFlags& flags, Console& console, const std::function<void(const Chosen&)>& use);

// A session with tensors to run it on.
struct Prepared {
  session::Model model;
  session::Session session;
  std::vector<graph::Tensor> inputs;
};
Prepared prepare(const CompileFlags& flags, Console& console);

// The machine that --target and --machine name.
machine::Machine target_machine(const std::string& target, const std::string& machine_file);

// "float32[1, 3, 224, 224]" by input, for JSON and words.
std::vector<std::pair<std::string, std::string>> input_types(const session::SessionInfo& info,
                                                             const std::vector<graph::Tensor>& inputs);

}  // namespace fusewise::cli
