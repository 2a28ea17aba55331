// A model and options to a program: from the cache, or compiled.
#pragma once

#include "base/hash.h"
#include "program/program.h"
#include "session/cache.h"
#include "session/metadata.h"
#include "session/model.h"
#include "session/session.h"

namespace fusewise::session {

struct Built {
  program::Program program;
  Metadata metadata;
  bool cache_hit = false;
  double import_ms = 0, compile_ms = 0;
  double read_ms = 0;  // from the cache
};

Cache cache_for(const SessionOptions& options, const Warn& warn);
compiler::CompileOptions compile_options_for(const SessionOptions& options);
// What an entry of the cache depends on.
Hash128 cache_key(const Hash128& model, const compiler::CompileOptions& compile);

Built find_or_compile(const Model& model, const SessionOptions& options, const Cache& cache,
                      const Hash128& key);

}  // namespace fusewise::session
