// The normal form and its arithmetic. Terms are sorted by degree (highest first), then by their atoms, which
// is a monomial order: exact division (dim_divide.cpp) relies on that.
#include "numerics/dim.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "numerics/dim_internal.h"

namespace fusewise {
namespace dim_internal {

int64_t checked_add(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_add_overflow(a, b, &result)) throw UserError("a dimension does not fit into 64 bits");
  return result;
}

int64_t checked_mul(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) throw UserError("a dimension does not fit into 64 bits");
  return result;
}

int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) throw UserError("a dimension is divided by zero");
  if (b == -1) return checked_mul(a, -1);
  int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

int64_t ceil_divide(int64_t a, int64_t b) {
  if (b == 0) throw UserError("a dimension is divided by zero");
  if (b == -1) return checked_mul(a, -1);
  int64_t quotient = a / b;
  return (a % b != 0 && (a < 0) == (b < 0)) ? quotient + 1 : quotient;
}

int64_t floor_modulo(int64_t a, int64_t b) {
  if (b == 0) throw UserError("a dimension is divided by zero");
  if (b == -1) return 0;
  int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

int64_t common_divisor(int64_t a, int64_t b) {
  auto magnitude = [](int64_t x) { return x == std::numeric_limits<int64_t>::min() ? int64_t{1} << 62 : x; };
  return std::gcd(magnitude(a), magnitude(b));
}

namespace {

int compare_terms(const std::vector<Dim::Term>& a, const std::vector<Dim::Term>& b) {
  size_t common = std::min(a.size(), b.size());
  for (size_t i = 0; i < common; ++i) {
    if (int order = compare(a[i].factors, b[i].factors)) return order;
    if (a[i].coefficient != b[i].coefficient) return a[i].coefficient < b[i].coefficient ? -1 : 1;
  }
  if (a.size() == b.size()) return 0;
  return a.size() < b.size() ? -1 : 1;
}

size_t mix(size_t seed, size_t value) {
  uint64_t h = (seed ^ value) * 0x9E3779B97F4A7C15ull;
  return static_cast<size_t>(h ^ (h >> 29));
}

size_t hash_text(std::string_view text) {
  uint64_t h = 0xCBF29CE484222325ull;
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return static_cast<size_t>(h);
}

// Nesting and size of what an atom over these dimensions would be.
void measure(const Dim& dim, int& depth, int& size) {
  for (const Dim::Term& term : dim.terms())
    for (const Dim::AtomPtr& factor : term.factors) {
      depth = std::max(depth, factor->depth + 1);
      size += factor->size;
    }
}

}  // namespace

int compare(const Dim& a, const Dim& b) {
  if (&a.terms() != &b.terms())
    if (int order = compare_terms(a.terms(), b.terms())) return order;
  if (a.constant_part() == b.constant_part()) return 0;
  return a.constant_part() < b.constant_part() ? -1 : 1;
}

int compare(const Dim::Atom& a, const Dim::Atom& b) {
  if (&a == &b) return 0;
  if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1;
  if (a.kind == Dim::Atom::Kind::symbol) return a.name.compare(b.name);
  if (int order = compare(a.a, b.a)) return order;
  return compare(a.b, b.b);
}

int compare(const std::vector<Dim::AtomPtr>& a, const std::vector<Dim::AtomPtr>& b) {
  if (a.size() != b.size()) return a.size() > b.size() ? -1 : 1;
  for (size_t i = 0; i < a.size(); ++i)
    if (int order = compare(*a[i], *b[i])) return order;
  return 0;
}

Dim make_atom(Dim::Atom::Kind kind, const Dim& a, const Dim& b) {
  auto atom = std::make_shared<Dim::Atom>();
  atom->kind = kind;
  atom->a = a;
  atom->b = b;
  measure(a, atom->depth, atom->size);
  measure(b, atom->depth, atom->size);
  if (atom->depth > max_depth || atom->size > max_size)
    throw UnsupportedError("not supported yet: a symbolic dimension whose expression is nested this deep");
  atom->hash = mix(mix(static_cast<size_t>(kind) + 1, a.hash()), b.hash());
  return Dim::from_atom(std::move(atom));
}

}  // namespace dim_internal

using dim_internal::checked_add;
using dim_internal::checked_mul;
using dim_internal::compare;

namespace {

bool before(const Dim::Term& a, const Dim::Term& b) { return compare(a.factors, b.factors) < 0; }

// Merges two sorted lists; the second counts `sign` times.
std::vector<Dim::Term> merge(const std::vector<Dim::Term>& a, const std::vector<Dim::Term>& b, int64_t sign) {
  std::vector<Dim::Term> result;
  result.reserve(a.size() + b.size());
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    int order = i == a.size() ? 1 : j == b.size() ? -1 : compare(a[i].factors, b[j].factors);
    if (order < 0) {
      result.push_back(a[i++]);
    } else if (order > 0) {
      result.push_back({checked_mul(b[j].coefficient, sign), b[j].factors});
      ++j;
    } else {
      int64_t sum = checked_add(a[i].coefficient, checked_mul(b[j].coefficient, sign));
      if (sum != 0) result.push_back({sum, a[i].factors});
      ++i, ++j;
    }
  }
  return result;
}

void append_scaled(std::vector<Dim::Term>& result, const std::vector<Dim::Term>& terms, int64_t scale) {
  if (scale == 0) return;
  for (const Dim::Term& term : terms) result.push_back({checked_mul(term.coefficient, scale), term.factors});
}

int64_t evaluate_atom(const Dim::Atom& atom, const SymbolValues& values) {
  using Kind = Dim::Atom::Kind;
  if (atom.kind == Kind::symbol) {
    auto found = values.find(atom.name);
    if (found == values.end()) throw UserError("the symbolic dimension '" + atom.name + "' has no value");
    return found->second;
  }
  int64_t a = atom.a.evaluate(values);
  int64_t b = atom.b.evaluate(values);
  switch (atom.kind) {
    case Kind::floor_div:
      return dim_internal::floor_divide(a, b);
    case Kind::ceil_div:
      return dim_internal::ceil_divide(a, b);
    case Kind::modulo:
      return dim_internal::floor_modulo(a, b);
    case Kind::min:
      return std::min(a, b);
    case Kind::max:
      return std::max(a, b);
    case Kind::symbol:
      break;
  }
  throw InternalError("unknown kind of dimension atom");
}

Dim substitute_atom(const Dim::AtomPtr& atom, const std::map<std::string, Dim>& replacements) {
  using Kind = Dim::Atom::Kind;
  if (atom->kind == Kind::symbol) {
    auto found = replacements.find(atom->name);
    return found == replacements.end() ? Dim::from_atom(atom) : found->second;
  }
  Dim a = atom->a.substitute(replacements);
  Dim b = atom->b.substitute(replacements);
  switch (atom->kind) {
    case Kind::floor_div:
      return floor_div(a, b);
    case Kind::ceil_div:
      return ceil_div(a, b);
    case Kind::modulo:
      return modulo(a, b);
    case Kind::min:
      return min(a, b);
    case Kind::max:
      return max(a, b);
    case Kind::symbol:
      break;
  }
  throw InternalError("unknown kind of dimension atom");
}

void collect_symbols(const Dim& dim, std::set<std::string>& names) {
  for (const Dim::Term& term : dim.terms())
    for (const Dim::AtomPtr& factor : term.factors) {
      if (factor->kind == Dim::Atom::Kind::symbol) names.insert(factor->name);
      collect_symbols(factor->a, names);
      collect_symbols(factor->b, names);
    }
}

}  // namespace

Dim Dim::from_terms(int64_t constant, std::vector<Term> terms) {
  for (Term& term : terms)
    std::sort(term.factors.begin(), term.factors.end(),
              [](const AtomPtr& a, const AtomPtr& b) { return compare(*a, *b) < 0; });
  if (!std::is_sorted(terms.begin(), terms.end(), before)) std::sort(terms.begin(), terms.end(), before);
  std::vector<Term> merged;
  for (Term& term : terms) {
    if (term.factors.empty()) {
      constant = checked_add(constant, term.coefficient);
    } else if (!merged.empty() && compare(merged.back().factors, term.factors) == 0) {
      merged.back().coefficient = checked_add(merged.back().coefficient, term.coefficient);
    } else {
      if (!merged.empty() && merged.back().coefficient == 0) merged.pop_back();
      merged.push_back(std::move(term));
    }
  }
  if (!merged.empty() && merged.back().coefficient == 0) merged.pop_back();
  if (merged.size() > dim_internal::max_terms)
    throw UnsupportedError("not supported yet: a symbolic dimension with this many terms");
  Dim result(constant);
  if (!merged.empty()) result.expression_ = std::make_shared<const std::vector<Term>>(std::move(merged));
  return result;
}

Dim Dim::from_atom(AtomPtr atom) {
  std::vector<Term> terms(1);
  terms[0].coefficient = 1;
  terms[0].factors.push_back(std::move(atom));
  return from_terms(0, std::move(terms));
}

Dim Dim::symbol(const std::string& name) {
  check(!name.empty(), "a symbolic dimension needs a name");
  auto atom = std::make_shared<Atom>();
  atom->kind = Atom::Kind::symbol;
  atom->name = name;
  atom->hash = dim_internal::hash_text(name);
  return from_atom(std::move(atom));
}

std::optional<int64_t> Dim::constant() const {
  if (expression_) return std::nullopt;
  return constant_;
}

int64_t Dim::value() const {
  if (expression_) throw InternalError("a constant dimension is needed, but this is " + to_string());
  return constant_;
}

std::optional<std::string> Dim::as_symbol() const {
  if (!expression_ || constant_ != 0 || expression_->size() != 1) return std::nullopt;
  const Term& term = expression_->front();
  if (term.coefficient != 1 || term.factors.size() != 1) return std::nullopt;
  if (term.factors[0]->kind != Atom::Kind::symbol) return std::nullopt;
  return term.factors[0]->name;
}

int64_t Dim::evaluate(const SymbolValues& values) const {
  int64_t sum = constant_;
  if (!expression_) return sum;
  for (const Term& term : *expression_) {
    int64_t product = term.coefficient;
    for (const AtomPtr& factor : term.factors) product = checked_mul(product, evaluate_atom(*factor, values));
    sum = checked_add(sum, product);
  }
  return sum;
}

Dim Dim::substitute(const std::map<std::string, Dim>& replacements) const {
  if (!expression_) return *this;
  Dim sum = constant_;
  for (const Term& term : *expression_) {
    Dim product = term.coefficient;
    for (const AtomPtr& factor : term.factors) product = product * substitute_atom(factor, replacements);
    sum = sum + product;
  }
  return sum;
}

std::set<std::string> Dim::symbols() const {
  std::set<std::string> names;
  collect_symbols(*this, names);
  return names;
}

const std::vector<Dim::Term>& Dim::terms() const {
  static const std::vector<Term> none;
  return expression_ ? *expression_ : none;
}

size_t Dim::hash() const {
  size_t h = dim_internal::mix(0, static_cast<size_t>(constant_));
  for (const Term& term : terms()) {
    h = dim_internal::mix(h, static_cast<size_t>(term.coefficient));
    for (const AtomPtr& factor : term.factors) h = dim_internal::mix(h, factor->hash);
  }
  return h;
}

Dim operator+(const Dim& a, const Dim& b) {
  int64_t constant = checked_add(a.constant_, b.constant_);
  if (!b.expression_) {
    Dim result = a;
    result.constant_ = constant;
    return result;
  }
  if (!a.expression_) {
    Dim result = b;
    result.constant_ = constant;
    return result;
  }
  return Dim::from_terms(constant, merge(a.terms(), b.terms(), 1));
}

Dim operator-(const Dim& a, const Dim& b) {
  int64_t constant;
  if (__builtin_sub_overflow(a.constant_, b.constant_, &constant))
    throw UserError("a dimension does not fit into 64 bits");
  if (!b.expression_) {
    Dim result = a;
    result.constant_ = constant;
    return result;
  }
  return Dim::from_terms(constant, merge(a.terms(), b.terms(), -1));
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  int64_t constant = checked_mul(a.constant_, b.constant_);
  if (!a.expression_ && !b.expression_) return constant;
  std::vector<Dim::Term> terms;
  append_scaled(terms, a.terms(), b.constant_);
  append_scaled(terms, b.terms(), a.constant_);
  if (a.terms().size() * b.terms().size() > dim_internal::max_terms)
    throw UnsupportedError("not supported yet: a symbolic dimension with this many terms");
  for (const Dim::Term& x : a.terms())
    for (const Dim::Term& y : b.terms()) {
      Dim::Term term{checked_mul(x.coefficient, y.coefficient), x.factors};
      term.factors.insert(term.factors.end(), y.factors.begin(), y.factors.end());
      if (term.factors.size() > dim_internal::max_degree)
        throw UnsupportedError("not supported yet: a product of this many symbolic dimensions");
      terms.push_back(std::move(term));
    }
  return Dim::from_terms(constant, std::move(terms));
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.constant_ != b.constant_) return false;
  if (a.expression_ == b.expression_) return true;
  if (!a.expression_ || !b.expression_) return false;
  return compare(a, b) == 0;
}

bool operator<(const Dim& a, const Dim& b) { return compare(a, b) < 0; }

Dim product(const Shape& shape) {
  Dim result = 1;
  for (const Dim& dim : shape) result = result * dim;
  return result;
}

}  // namespace fusewise
