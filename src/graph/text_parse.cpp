#include <fmt/core.h>

#include <cctype>
#include <charconv>
#include <map>
#include <utility>

#include "base/error.h"
#include "graph/shape_rules.h"
#include "graph/text.h"
#include "graph/text_internal.h"

namespace fusewise::graph {

namespace {

// Reads one line from left to right.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  [[noreturn]] void fail(const std::string& expected) const {
    throw UserError(fmt::format("{} is expected at column {}", expected, position_ + 1));
  }
  void skip_blanks() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }
  bool at_end() {
    skip_blanks();
    return position_ == text_.size();
  }
  bool accept(std::string_view token) {
    skip_blanks();
    if (!text_.substr(position_).starts_with(token)) return false;
    position_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail(fmt::format("'{}'", token));
  }
  // Letters, digits and underscores.
  std::string_view word() {
    skip_blanks();
    const size_t begin = position_;
    while (position_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[position_])) != 0 || text_[position_] == '_'))
      ++position_;
    return text_.substr(begin, position_ - begin);
  }
  template <class T>
  T integer() {
    skip_blanks();
    T value{};
    const char* begin = text_.data() + position_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) fail("an integer");
    position_ += static_cast<size_t>(end - begin);
    return value;
  }
  std::string quoted() {
    expect("\"");
    std::string out;
    while (position_ < text_.size() && text_[position_] != '"') {
      char c = text_[position_++];
      if (c == '\\') c = escaped();
      out += c;
    }
    if (position_ == text_.size()) fail("a closing quote");
    ++position_;
    return out;
  }
  // The pieces between the brackets of [a, b, ...]; commas in quotes and parentheses do not count.
  std::vector<std::string_view> list() {
    expect("[");
    std::vector<std::string_view> pieces;
    if (accept("]")) return pieces;
    for (;;) {
      pieces.push_back(piece());
      if (accept("]")) return pieces;
      expect(",");
    }
  }
  std::string_view rest() {
    skip_blanks();
    return text_.substr(position_);
  }

 private:
  char escaped() {
    if (position_ == text_.size()) fail("an escaped character");
    const char c = text_[position_++];
    if (c != 'x') return c;
    unsigned code = 0;
    const char* begin = text_.data() + position_;
    const char* limit = text_.data() + std::min(position_ + 2, text_.size());
    const auto [end, error] = std::from_chars(begin, limit, code, 16);
    if (error != std::errc() || end != begin + 2) fail("two hexadecimal digits");
    position_ += 2;
    return static_cast<char>(code);
  }
  std::string_view piece() {
    skip_blanks();
    const size_t begin = position_;
    int depth = 0;
    bool inside_quotes = false;
    for (; position_ < text_.size(); ++position_) {
      const char c = text_[position_];
      if (inside_quotes) {
        if (c == '\\') ++position_;
        if (c == '"') inside_quotes = false;
      } else if (c == '"') {
        inside_quotes = true;
      } else if (c == '(') {
        ++depth;
      } else if (c == ')') {
        --depth;
      } else if (depth <= 0 && (c == ',' || c == ']')) {
        break;
      }
    }
    if (position_ >= text_.size()) {
      position_ = text_.size();
      fail("a closing bracket");
    }
    return text_.substr(begin, position_ - begin);
  }

  std::string_view text_;
  size_t position_ = 0;
};

void read(Cursor& cursor, bool& value) {
  const int number = cursor.integer<int>();
  if (number != 0 && number != 1) throw UserError("a flag is 0 or 1");
  value = number == 1;
}
template <class T>
void read(Cursor& cursor, T& value)
  requires std::is_integral_v<T>
{
  value = cursor.integer<T>();
}
void read(Cursor& cursor, ScalarOp& value) {
  const std::string_view name = cursor.word();
  const std::optional<ScalarOp> op = scalar_op_of(name);
  if (!op) throw UserError(fmt::format("'{}' is no scalar operation", name));
  value = *op;
}
void read(Cursor& cursor, Combine& value) {
  const std::string_view name = cursor.word();
  const std::optional<Combine> combine = combine_of(name);
  if (!combine) throw UserError(fmt::format("'{}' combines nothing: sum, product, max or min", name));
  value = *combine;
}
void read(Cursor& cursor, hostops::Function& value) {
  const std::string_view name = cursor.word();
  const std::optional<hostops::Function> function = hostops::function_of(name);
  if (!function) throw UserError(fmt::format("'{}' is no host function", name));
  value = *function;
}
void read(Cursor& cursor, std::vector<std::string>& symbols) {
  for (std::string_view piece : cursor.list()) {
    const std::optional<std::string> symbol = Dim::parse(piece).as_symbol();
    if (!symbol) throw UserError(fmt::format("'{}' is no symbol", piece));
    symbols.push_back(*symbol);
  }
}
void read(Cursor& cursor, Update& value) {
  const std::string_view name = cursor.word();
  const std::optional<Update> update = update_of(name);
  if (!update) throw UserError(fmt::format("'{}' is no update: replace, sum, product, max or min", name));
  value = *update;
}
void read(Cursor& cursor, std::vector<Dim>& values) {
  for (std::string_view piece : cursor.list()) values.push_back(Dim::parse(piece));
}
void read(Cursor& cursor, std::optional<Dim>& value) {
  const std::vector<std::string_view> pieces = cursor.list();
  if (pieces.size() > 1) throw UserError("one dimension or none is expected");
  if (!pieces.empty()) value = Dim::parse(pieces[0]);
}
template <class T>
void read(Cursor& cursor, std::vector<T>& values) {
  for (std::string_view piece : cursor.list()) {
    Cursor inner(piece);
    values.push_back(inner.integer<T>());
    if (!inner.at_end()) throw UserError(fmt::format("'{}' is not an integer", piece));
  }
}

TensorType read_type(Cursor& cursor) {
  const std::string_view name = cursor.word();
  const std::optional<DataType> element = data_type_of(name);
  if (!element || *element == DataType::undefined)
    throw UserError(fmt::format("'{}' is no element type", name));
  TensorType type{*element, {}};
  read(cursor, type.shape);
  for (const Dim& d : type.shape)
    if (d.is_constant() && d.value() < 0) throw UserError("a dimension is negative");
  return type;
}

// The attributes of an operation with nothing filled in.
template <size_t I = 0>
Attributes empty_attributes(size_t op) {
  if constexpr (I < std::variant_size_v<Attributes>) {
    if (op == I) return Attributes(std::in_place_index<I>);
    return empty_attributes<I + 1>(op);
  } else {
    throw InternalError("operation out of range");
  }
}

void complete(BroadcastAttributes& a, const TensorType& type) { a.shape = type.shape; }
void complete(ReshapeAttributes& a, const TensorType& type) { a.shape = type.shape; }
void complete(SliceAttributes& a, const TensorType& type) { a.shape = type.shape; }
void complete(DimsAttributes& a, const TensorType& type) { a.scalar = type.shape.empty(); }
template <class A>
void complete(A&, const TensorType&) {}

// The text, line by line, and what all bodies in it share.
struct Source {
  std::string_view text;
  int line = 0;
  int64_t zero_bytes = 0;

  std::optional<std::string_view> next() {
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      std::string_view one = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      ++line;
      if (one.ends_with('\r')) one.remove_suffix(1);
      Cursor cursor(one);
      if (!cursor.at_end() && !cursor.rest().starts_with('#')) return one;
    }
    return std::nullopt;
  }
};

class GraphParser {
 public:
  GraphParser(const ParseOptions& options, Source& source, int depth)
      : options_(options), source_(source), depth_(depth) {}

  Graph parse() {
    bool is_first = true, is_open = true;
    while (is_open) {
      const std::optional<std::string_view> line = source_.next();
      if (!line) break;
      is_open = parse_line(*line, std::exchange(is_first, false));
    }
    if (is_open && depth_ > 0) throw UserError("a body is not closed");
    place_inputs();
    return std::move(graph_);
  }
  void set_name(std::string name) { graph_.name = std::move(name); }

 private:
  // False at the end of a body.
  bool parse_line(std::string_view line, bool is_first) {
    Cursor cursor(line);
    if (depth_ > 0 && cursor.accept("}")) {
      if (!cursor.at_end()) cursor.fail("the end of the line");
      return false;
    }
    if (cursor.accept("%")) {
      parse_node(cursor);
      return true;
    }
    const std::string_view keyword = cursor.word();
    if (keyword == "graph" && depth_ == 0) {
      if (!is_first) throw UserError("the graph line comes first, and once");
      graph_.name = cursor.quoted();
    } else if (keyword == "model") {
      expect_number(cursor, graph_.model_nodes.size(), "model node");
      ModelNode model;
      model.name = cursor.quoted();
      model.op_type = cursor.quoted();
      model.first_output = cursor.quoted();
      graph_.model_nodes.push_back(std::move(model));
    } else if (keyword == "constant") {
      parse_constant(cursor);
      return true;
    } else if (keyword == "output") {
      const Value value = read_value(cursor);
      graph_.outputs.push_back({value, cursor.quoted()});
    } else {
      throw UserError("a line begins with graph, model, constant, output or %");
    }
    if (!cursor.at_end()) cursor.fail("the end of the line");
    return true;
  }

  void expect_number(Cursor& cursor, size_t number, const char* what) const {
    if (cursor.integer<uint32_t>() != number)
      throw UserError(fmt::format("the next {} is number {}", what, number));
  }

  Value read_value(Cursor& cursor) const {
    cursor.expect("%");
    const NodeId id = cursor.integer<NodeId>();
    if (id >= graph_.size()) throw UserError(fmt::format("%{} is used before it is defined", id));
    const uint32_t result = cursor.accept(".") ? cursor.integer<uint32_t>() : 0;
    if (result >= graph_.node(id).results.size())
      throw UserError(fmt::format("%{} has no result {}", id, result));
    return {id, result};
  }

  void parse_constant(Cursor& cursor) {
    expect_number(cursor, graph_.constants.size(), "constant");
    ConstantData data;
    data.name = cursor.quoted();
    cursor.expect(":");
    data.type = read_type(cursor);
    static_count(data.type);
    cursor.expect("=");
    if (cursor.accept("hash:")) {
      const std::optional<Hash128> hash = Hash128::from_hex(cursor.rest());
      if (!hash) cursor.fail("a hash of 32 hexadecimal digits");
      graph_.constants.push_back(missing_constant({data.name, data.type, *hash}));
      return;
    }
    auto bytes = std::make_shared<const std::vector<std::byte>>(
        text_internal::parse_elements(data.type, cursor.rest()));
    data.bytes = *bytes;
    data.owner = std::move(bytes);
    graph_.constants.push_back(std::move(data));
  }

  ConstantData missing_constant(const MissingConstant& missing) {
    ConstantData data;
    if (options_.resolve) {
      data = options_.resolve(missing);
      if (bits_of(missing.type.element) != 0 &&
          static_cast<int64_t>(data.bytes.size()) != static_bytes(missing.type))
        throw UserError(fmt::format("the data of constant '{}' has {} bytes instead of {}", missing.name,
                                    data.bytes.size(), static_bytes(missing.type)));
    } else if (options_.zeros_stand_in) {
      const int64_t size = static_bytes(missing.type);
      if (size > options_.most_zero_bytes - source_.zero_bytes)
        throw UserError("zeros for the constants whose data the text leaves out take too much memory");
      source_.zero_bytes += size;
      auto zeros = std::make_shared<const std::vector<std::byte>>(static_cast<size_t>(size));
      data.bytes = *zeros;
      data.owner = std::move(zeros);
    } else {
      throw UserError(fmt::format("the text leaves out the data of constant '{}'", missing.name));
    }
    data.name = missing.name;
    data.type = missing.type;
    return data;
  }

  void parse_node(Cursor& cursor) {
    expect_number(cursor, graph_.size(), "node");
    cursor.expect("=");
    const std::string_view name = cursor.word();
    const std::optional<Op> op = op_of(name);
    if (!op) throw UserError(fmt::format("'{}' is no operation", name));
    Node node{*op, {}, empty_attributes(static_cast<size_t>(*op)), {}, {}};
    if (cursor.rest().starts_with('%')) {
      do node.operands.push_back(read_value(cursor));
      while (cursor.accept(","));
    }
    if (*op == Op::input) read_input(cursor);
    read_attributes(cursor, node.attributes);
    cursor.expect(":");
    std::vector<TensorType> types;
    do types.push_back(read_type(cursor));
    while (cursor.accept(","));
    std::visit([&](auto& a) { complete(a, types[0]); }, node.attributes);
    if (cursor.accept("from")) read(cursor, node.sources);
    for (uint32_t source : node.sources)
      if (source >= graph_.model_nodes.size())
        throw UserError(fmt::format("there is no model node {}", source));
    if (!cursor.at_end()) cursor.fail("the end of the line");
    check_constant(node, types[0]);
    if (kind_of(*op) == Kind::control) parse_bodies(node);
    append(std::move(node), types);
  }

  void parse_bodies(Node& node) {
    if (depth_ >= deepest_body)
      throw UserError(fmt::format("bodies are nested deeper than {} levels", deepest_body));
    const size_t count = node.op == Op::branch ? 2 : 1;
    while (node.bodies.size() < count) {
      const std::optional<std::string_view> line = source_.next();
      Cursor cursor(line ? *line : std::string_view());
      cursor.expect("body");
      GraphParser parser(options_, source_, depth_ + 1);
      parser.set_name(cursor.quoted());
      cursor.expect("{");
      if (!cursor.at_end()) cursor.fail("the end of the line");
      node.bodies.push_back(std::make_shared<const Graph>(parser.parse()));
    }
  }

  void read_input(Cursor& cursor) {
    cursor.expect("index=");
    const uint32_t index = cursor.integer<uint32_t>();
    cursor.expect("name=");
    if (!inputs_.emplace(index, GraphInput{static_cast<NodeId>(graph_.size()), cursor.quoted()}).second)
      throw UserError(fmt::format("there are two inputs with index {}", index));
  }

  static void read_attributes(Cursor& cursor, Attributes& attributes) {
    std::visit(
        [&](auto& a) {
          text_internal::visit_fields(
              [&](std::string_view key, auto& value) {
                cursor.expect(key);
                cursor.expect("=");
                read(cursor, value);
              },
              a);
        },
        attributes);
  }

  void check_constant(const Node& node, const TensorType& type) const {
    if (node.op != Op::constant) return;
    const uint32_t index = attributes<ConstantAttributes>(node).constant;
    if (index >= graph_.constants.size()) throw UserError(fmt::format("there is no constant {}", index));
    if (graph_.constants[index].type != type)
      throw UserError(
          fmt::format("constant {} has the type {}", index, to_string(graph_.constants[index].type)));
  }

  void append(Node node, const std::vector<TensorType>& types) {
    for (const Value& operand : node.operands)
      if ((kind_of(graph_.node(operand.node).op) == Kind::control) != (node.op == Op::result))
        throw UserError("only result nodes read a loop or a branch, and nothing else");
    node.results = types;
    node.results = infer(graph_, node).results;
    if (node.results.size() != types.size())
      throw UserError(fmt::format("it has {} results, not {}", node.results.size(), types.size()));
    for (size_t i = 0; i < types.size(); ++i)
      if (node.results[i] != types[i])
        throw UserError(
            fmt::format("the type is {} and should be {}", to_string(types[i]), to_string(node.results[i])));
    graph_.append(std::move(node));
  }
  void place_inputs() {
    for (auto& [index, input] : inputs_) {
      if (index != graph_.inputs.size())
        throw UserError(fmt::format("there is no input {}", graph_.inputs.size()));
      graph_.inputs.push_back(std::move(input));
    }
  }

  const ParseOptions& options_;
  Source& source_;
  int depth_;
  Graph graph_;
  std::map<uint32_t, GraphInput> inputs_;
};

}  // namespace

Graph parse(std::string_view text, const ParseOptions& options) {
  Source source{text};
  try {
    return GraphParser(options, source, 0).parse();
  } catch (const UserError& error) {
    throw UserError(fmt::format("line {}: {}", source.line, error.what()));
  } catch (const UnsupportedError& error) {
    throw UnsupportedError(fmt::format("line {}: {}", source.line, error.what()));
  }
}

}  // namespace fusewise::graph
