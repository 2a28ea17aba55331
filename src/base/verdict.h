// The answer of a legality check: allowed, or forbidden with a reason code that scripts can rely on,
// words for people, and the ids of the nodes that are to blame.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fusewise {

class Verdict {
 public:
  static Verdict allow() { return Verdict(); }
  // `code` is a short stable word such as "cycle"; `detail` is a sentence for people.
  static Verdict forbid(std::string code, std::string detail, std::vector<uint32_t> nodes = {}) {
    Verdict v;
    v.allowed_ = false;
    v.code = std::move(code);
    v.detail = std::move(detail);
    v.nodes = std::move(nodes);
    return v;
  }
  bool allowed() const { return allowed_; }
  explicit operator bool() const { return allowed_; }

  std::string code;
  std::string detail;
  std::vector<uint32_t> nodes;

 private:
  bool allowed_ = true;
};

}  // namespace fusewise
