// Models whose inner shapes depend on sizes or on values of their inputs: they are imported for given ones.
#pragma once

#include <string>
#include <vector>

#include "session/inputs.h"
#include "session/model.h"

namespace fusewise::session {

// The inputs as the file declares them, without importing it. UserError, and UnsupportedError for inputs that are no
// plain tensors of known rank.
std::vector<InputInfo> declared_inputs(const std::string& path);

// What of the inputs is put into the import, ever more of it.
enum class Specialization : uint8_t {
  none,
  sizes,           // the values of all symbols
  small_integers,  // and the values of integer and boolean inputs of a few elements
  values,          // and of other inputs of a few elements, and integers of more
};

struct SpecializedModel {
  ModelOptions options;
  std::vector<std::string> bound;  // inputs that the model no longer has
};
// `inputs` are the declared ones, `prepared` what the model is to run on.
SpecializedModel specialize(const ModelOptions& options, std::span<const InputInfo> inputs,
                            const PreparedInputs& prepared, Specialization how);

}  // namespace fusewise::session
