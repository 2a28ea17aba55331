// Dimensions as text, both ways. A name that is not an identifier is printed in double quotes.
#include <cctype>
#include <charconv>

#include "base/error.h"
#include "numerics/dim_internal.h"

namespace fusewise {
namespace {

using Kind = Dim::Atom::Kind;

struct Function {
  Kind kind;
  std::string_view name;
};

constexpr Function functions[] = {
    {Kind::floor_div, "floordiv"},
    {Kind::ceil_div, "ceildiv"},
    {Kind::modulo, "mod"},
    {Kind::min, "min"},
    {Kind::max, "max"},
};

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool continues_name(char c) {
  return starts_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.';
}

void print_name(const std::string& name, std::string& out) {
  bool plain = starts_name(name[0]);
  for (char c : name) plain = plain && continues_name(c);
  if (plain) {
    out += name;
    return;
  }
  out += '"';
  for (char c : name) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  out += '"';
}

void print(const Dim& dim, std::string& out);

void print_atom(const Dim::Atom& atom, std::string& out) {
  if (atom.kind == Kind::symbol) return print_name(atom.name, out);
  for (const Function& function : functions)
    if (function.kind == atom.kind) out += function.name;
  out += '(';
  print(atom.a, out);
  out += ", ";
  print(atom.b, out);
  out += ')';
}

// A signed number with its operator; the magnitude is left out where a product of atoms follows and it is 1.
void print_coefficient(int64_t value, bool first, bool product_follows, std::string& out) {
  if (!first) out += value < 0 ? " - " : " + ";
  if (first && value < 0) out += '-';
  uint64_t magnitude = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  if (product_follows && magnitude == 1) return;
  out += std::to_string(magnitude);
  if (product_follows) out += '*';
}

void print(const Dim& dim, std::string& out) {
  bool first = true;
  for (const Dim::Term& term : dim.terms()) {
    print_coefficient(term.coefficient, first, true, out);
    for (size_t i = 0; i < term.factors.size(); ++i) {
      if (i > 0) out += '*';
      print_atom(*term.factors[i], out);
    }
    first = false;
  }
  if (first || dim.constant_part() != 0) print_coefficient(dim.constant_part(), first, false, out);
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Dim parse_all() {
    Dim result = parse_sum();
    skip_spaces();
    if (position_ != text_.size()) fail("an operator");
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& wanted) const {
    throw UserError("'" + std::string(text_) + "' is not a dimension: " + wanted +
                    " is expected at position " + std::to_string(position_));
  }

  void skip_spaces() {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_])))
      ++position_;
  }

  bool accept(char c) {
    skip_spaces();
    if (position_ == text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  void expect(char c) {
    if (!accept(c)) fail(std::string("'") + c + "'");
  }

  Dim parse_sum() {
    if (++depth_ > dim_internal::max_depth) fail("less nesting");
    bool negative = accept('-');
    Dim sum = parse_product(negative);
    for (;;) {
      if (accept('+'))
        sum = sum + parse_product(false);
      else if (accept('-'))
        sum = sum + parse_product(true);
      else
        break;
    }
    --depth_;
    return sum;
  }

  // The sign belongs to the first number, so that the least integer can be read.
  Dim parse_product(bool negative) {
    skip_spaces();
    Dim product = negative ? Dim(-1) : Dim(1);
    bool number = position_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[position_]));
    product = number ? parse_number(negative) : product * parse_factor();
    while (accept('*')) product = product * parse_factor();
    return product;
  }

  Dim parse_number(bool negative) {
    size_t start = position_;
    while (position_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[position_])))
      ++position_;
    std::string digits = negative ? "-" : "";
    digits += text_.substr(start, position_ - start);
    int64_t value = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) fail("a number of at most 64 bits");
    return value;
  }

  Dim parse_factor() {
    skip_spaces();
    if (position_ == text_.size()) fail("a number, a name or a parenthesis");
    char c = text_[position_];
    if (std::isdigit(static_cast<unsigned char>(c))) return parse_number(false);
    if (c == '"') return Dim::symbol(parse_quoted());
    if (accept('(')) {
      Dim inside = parse_sum();
      expect(')');
      return inside;
    }
    if (!starts_name(c)) fail("a number, a name or a parenthesis");
    size_t start = position_;
    while (position_ < text_.size() && continues_name(text_[position_])) ++position_;
    std::string name(text_.substr(start, position_ - start));
    return accept('(') ? parse_function(name) : Dim::symbol(name);
  }

  std::string parse_quoted() {
    std::string name;
    for (++position_; position_ < text_.size() && text_[position_] != '"'; ++position_) {
      if (text_[position_] == '\\' && position_ + 1 < text_.size()) ++position_;
      name += text_[position_];
    }
    if (position_ == text_.size()) fail("a closing quote");
    ++position_;
    if (name.empty()) fail("a name between the quotes");
    return name;
  }

  Dim parse_function(const std::string& name) {
    Dim a = parse_sum();
    expect(',');
    Dim b = parse_sum();
    expect(')');
    if (name == "floordiv") return floor_div(a, b);
    if (name == "ceildiv") return ceil_div(a, b);
    if (name == "mod") return modulo(a, b);
    if (name == "min") return min(a, b);
    if (name == "max") return max(a, b);
    fail("floordiv, ceildiv, mod, min or max instead of " + name);
  }

  std::string_view text_;
  size_t position_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string Dim::to_string() const {
  std::string out;
  print(*this, out);
  return out;
}

Dim Dim::parse(std::string_view text) { return Parser(text).parse_all(); }

std::string to_string(const Shape& shape) {
  std::string out = "[";
  for (const Dim& dim : shape) {
    if (out.size() > 1) out += ", ";
    print(dim, out);
  }
  return out + "]";
}

}  // namespace fusewise
