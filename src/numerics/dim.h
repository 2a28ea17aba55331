// A dimension: an integer that may depend on the model's symbols. A value type, immutable and normalised:
// a sum of products over atoms, where an atom is a symbol or a floor division, ceiling division, modulo,
// minimum or maximum of two dimensions. Two dimensions with the same normal form compare equal; equality
// that normalisation cannot show is "not known to be equal", never an error. Arithmetic that leaves 64 bits
// throws UserError. A divisor is never 0: a constant 0 throws UserError at once, a symbolic one on evaluation
// (unless the division was folded away).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fusewise {

// Values of symbols at run time, by name.
using SymbolValues = std::map<std::string, int64_t, std::less<>>;

class Dim {
 public:
  Dim() = default;                             // the constant 0
  Dim(int64_t value) : constant_(value) {}     // NOLINT: constants convert freely
  Dim(int value) : constant_(value) {}         // NOLINT
  static Dim symbol(const std::string& name);  // a symbol, known to be at least 0

  bool is_constant() const { return !expression_; }
  std::optional<int64_t> constant() const;  // the value if constant
  int64_t value() const;                    // the value; check fails when not constant
  bool is(int64_t value) const { return !expression_ && constant_ == value; }
  std::optional<std::string> as_symbol() const;  // the name if this is exactly one symbol

  // Throws UserError that names the symbol when one has no value.
  int64_t evaluate(const SymbolValues& values) const;
  Dim substitute(const std::map<std::string, Dim>& replacements) const;
  std::set<std::string> symbols() const;

  // Bounds that hold for all symbol values >= 0 (each symbol taken as at least `least`).
  std::optional<int64_t> lower_bound(int64_t least = 0) const;
  std::optional<int64_t> upper_bound() const;  // nothing when unbounded
  // True when normalisation shows that this is a multiple of `divisor` for all symbol values.
  bool is_multiple_of(int64_t divisor) const;

  std::string to_string() const;            // "batch*seq + 3", "floordiv(n, 2)"
  static Dim parse(std::string_view text);  // inverse of to_string; UserError otherwise
  size_t hash() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend bool operator==(const Dim& a, const Dim& b);
  friend bool operator!=(const Dim& a, const Dim& b) { return !(a == b); }
  friend bool operator<(const Dim& a, const Dim& b);  // an arbitrary but deterministic order, for maps
  friend Dim floor_div(const Dim& a, const Dim& b);   // rounds toward minus infinity
  friend Dim ceil_div(const Dim& a, const Dim& b);
  friend Dim modulo(const Dim& a, const Dim& b);  // a - b * floor_div(a, b)
  friend Dim min(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);

  // The normal form, for those who translate a Dim into another language (Kernel IR, machine code): constant
  // plus the sum of coefficient * product of atoms.
  struct Atom;
  using AtomPtr = std::shared_ptr<const Atom>;
  struct Term {
    int64_t coefficient;
    std::vector<AtomPtr> factors;  // sorted; repeated for powers; never empty
  };
  const std::vector<Term>& terms() const;                            // empty for a constant
  static Dim from_terms(int64_t constant, std::vector<Term> terms);  // any order, normalised here
  static Dim from_atom(AtomPtr atom);                                // the dimension that is just this atom
  int64_t constant_part() const { return constant_; }

 private:
  int64_t constant_ = 0;
  std::shared_ptr<const std::vector<Term>> expression_;  // null for a constant
};

struct Dim::Atom {
  enum class Kind : uint8_t { symbol, floor_div, ceil_div, modulo, min, max };
  Kind kind;
  std::string name;  // symbol only
  Dim a, b;          // the others
  size_t hash = 0;   // of all the above, the same in every run
  int depth = 1;     // levels of nesting and atoms below, both limited:
  int size = 1;      // building a larger one throws UnsupportedError
};

using Shape = std::vector<Dim>;
std::string to_string(const Shape& shape);  // "[batch, 3, 224]"
Dim product(const Shape& shape);            // 1 for rank 0

}  // namespace fusewise
