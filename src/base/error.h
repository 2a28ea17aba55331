// Errors of three kinds. A user's fault (bad model, bad option) is a UserError whose message names the
// file and the node and says what to do; something not imported or not compiled yet is an
// UnsupportedError; a broken invariant of ours is an InternalError. A refusal of the planner is no
// error but a Verdict (verdict.h). Exceptions end at session, capi and python.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace fusewise {

// What a message can carry beside its words; empty strings where unknown.
struct ErrorContext {
  std::string file = {};
  std::string node = {};
  std::string op = {};
  std::string hint = {};
};

class UserError : public std::runtime_error {
 public:
  explicit UserError(const std::string& message, ErrorContext where = {})
      : std::runtime_error(message), context(std::move(where)) {}
  ErrorContext context;
};

// One kind of thing that is not supported: which operator, version and element type, how often, and the
// first node where it occurs.
struct UnsupportedItem {
  std::string what;
  int count = 1;
  std::string first_node;
};

class UnsupportedError : public std::runtime_error {
 public:
  explicit UnsupportedError(const std::string& message, std::vector<UnsupportedItem> missing = {})
      : std::runtime_error(message), items(std::move(missing)) {}
  std::vector<UnsupportedItem> items;
};

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// Throws InternalError unless `condition` holds. Always on, in every build.
inline void check(bool condition, const char* message) {
  if (!condition) throw InternalError(message);
}
inline void check(bool condition, const std::string& message) {
  if (!condition) throw InternalError(message);
}

}  // namespace fusewise
