// A trace of runs in the JSON of Chrome's trace viewer (chrome://tracing, ui.perfetto.dev).
#pragma once

#include <span>
#include <string>

#include "session/session.h"

namespace fusewise::cli {

// One row per worker thread and one for the runs; a slice per piece of a step, named after its kernel, with the
// model's nodes, the phase and the blocks.
std::string chrome_trace(const std::string& model, const session::Session& session,
                         std::span<const session::TracedPiece> pieces);

}  // namespace fusewise::cli
