#include "import/onnx/reader.h"

#include <fmt/core.h>

#include <protozero/pbf_reader.hpp>

#include "base/error.h"
#include "base/mapped_file.h"

namespace fusewise::onnx {

namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

// A field is chosen by tag and wire type together, so that a field of an unexpected wire type is skipped like
// an unknown one instead of being misread.
constexpr uint32_t varint(uint32_t tag) { return (tag << 3) | uint32_t(pbf_wire_type::varint); }
constexpr uint32_t bytes(uint32_t tag) { return (tag << 3) | uint32_t(pbf_wire_type::length_delimited); }
constexpr uint32_t fixed32(uint32_t tag) { return (tag << 3) | uint32_t(pbf_wire_type::fixed32); }
constexpr uint32_t fixed64(uint32_t tag) { return (tag << 3) | uint32_t(pbf_wire_type::fixed64); }

// Graphs inside attributes of nodes of graphs: reading recurses over them, so their depth is limited.
constexpr int max_nesting = 256;

std::string_view text(pbf_reader& r) {
  const protozero::data_view view = r.get_view();
  return {view.data(), view.size()};
}

std::span<const std::byte> span_of(pbf_reader& r) {
  const protozero::data_view view = r.get_view();
  return {reinterpret_cast<const std::byte*>(view.data()), view.size()};
}

template <class T, class Range>
void append(std::vector<T>& out, const Range& range) {
  for (auto value : range) out.push_back(value);
}

std::pair<std::string_view, std::string_view> read_key_value(pbf_reader r) {
  std::pair<std::string_view, std::string_view> result;
  while (r.next()) {
    switch (r.tag_and_type()) {
      case bytes(1):
        result.first = text(r);
        break;
      case bytes(2):
        result.second = text(r);
        break;
      default:
        r.skip();
    }
  }
  return result;
}

Tensor read_tensor_message(pbf_reader r) {
  Tensor t;
  while (r.next()) {
    switch (r.tag_and_type()) {
      case varint(1):
        t.dims.push_back(r.get_int64());
        break;
      case bytes(1):
        append(t.dims, r.get_packed_int64());
        break;
      case varint(2):
        t.element_type = r.get_int32();
        break;
      case fixed32(4):
        t.floats.push_back(r.get_float());
        break;
      case bytes(4):
        append(t.floats, r.get_packed_float());
        break;
      case varint(5):
        t.int32s.push_back(r.get_int32());
        break;
      case bytes(5):
        append(t.int32s, r.get_packed_int32());
        break;
      case bytes(6):
        t.strings.push_back(text(r));
        break;
      case varint(7):
        t.int64s.push_back(r.get_int64());
        break;
      case bytes(7):
        append(t.int64s, r.get_packed_int64());
        break;
      case bytes(8):
        t.name = text(r);
        break;
      case bytes(9):
        t.raw = span_of(r);
        break;
      case fixed64(10):
        t.doubles.push_back(r.get_double());
        break;
      case bytes(10):
        append(t.doubles, r.get_packed_double());
        break;
      case varint(11):
        t.uint64s.push_back(r.get_uint64());
        break;
      case bytes(11):
        append(t.uint64s, r.get_packed_uint64());
        break;
      case bytes(13):
        t.external.push_back(read_key_value(r.get_message()));
        break;
      case varint(14):
        t.is_external = r.get_int32() == 1;
        break;
      default:
        r.skip();
    }
  }
  return t;
}

DimInfo read_dim(pbf_reader r) {
  DimInfo dim;
  while (r.next()) {
    switch (r.tag_and_type()) {
      case varint(1):
        dim.value = r.get_int64();
        break;
      case bytes(2):
        dim.symbol = text(r);
        break;
      default:
        r.skip();
    }
  }
  return dim;
}

void read_tensor_type(pbf_reader r, ValueInfo& info) {
  while (r.next()) {
    switch (r.tag_and_type()) {
      case varint(1):
        info.element_type = r.get_int32();
        break;
      case bytes(2): {
        info.shape.emplace();
        pbf_reader shape = r.get_message();
        while (shape.next()) {
          if (shape.tag_and_type() == bytes(1)) {
            info.shape->push_back(read_dim(shape.get_message()));
          } else {
            shape.skip();
          }
        }
        break;
      }
      default:
        r.skip();
    }
  }
}

void read_type(pbf_reader r, ValueInfo& info) {
  using Kind = ValueInfo::Kind;
  while (r.next()) {
    switch (r.tag_and_type()) {
      case bytes(1):
        info.kind = Kind::tensor;
        read_tensor_type(r.get_message(), info);
        break;
      case bytes(4):
        info.kind = Kind::sequence;
        r.skip();
        break;
      case bytes(5):
        info.kind = Kind::map;
        r.skip();
        break;
      case bytes(8):
        info.kind = Kind::sparse_tensor;
        r.skip();
        break;
      case bytes(9):
        info.kind = Kind::optional;
        r.skip();
        break;
      case bytes(7):
        info.kind = Kind::other;
        r.skip();
        break;
      default:
        r.skip();
    }
  }
}

ValueInfo read_value_info(pbf_reader r) {
  ValueInfo info;
  while (r.next()) {
    switch (r.tag_and_type()) {
      case bytes(1):
        info.name = text(r);
        break;
      case bytes(2):
        read_type(r.get_message(), info);
        break;
      default:
        r.skip();
    }
  }
  return info;
}

Graph read_graph(pbf_reader r, int nesting);

Attribute read_attribute(pbf_reader r, int nesting) {
  Attribute a;
  const auto graph = [&] {
    a.graphs.push_back(std::make_shared<const Graph>(read_graph(r.get_message(), nesting + 1)));
  };
  while (r.next()) {
    switch (r.tag_and_type()) {
      case bytes(1):
        a.name = text(r);
        break;
      case fixed32(2):
        a.f = r.get_float();
        break;
      case varint(3):
        a.i = r.get_int64();
        break;
      case bytes(4):
        a.s = text(r);
        break;
      case bytes(5):
        a.tensors.push_back(read_tensor_message(r.get_message()));
        break;
      case bytes(6):
        graph();
        break;
      case fixed32(7):
        a.floats.push_back(r.get_float());
        break;
      case bytes(7):
        append(a.floats, r.get_packed_float());
        break;
      case varint(8):
        a.ints.push_back(r.get_int64());
        break;
      case bytes(8):
        append(a.ints, r.get_packed_int64());
        break;
      case bytes(9):
        a.strings.push_back(text(r));
        break;
      case bytes(10):
        a.tensors.push_back(read_tensor_message(r.get_message()));
        break;
      case bytes(11):
        graph();
        break;
      case varint(20):
        a.type = static_cast<Attribute::Type>(r.get_int32());
        break;
      case bytes(21):
        a.reference = text(r);
        break;
      default:
        r.skip();
    }
  }
  return a;
}

// Files of the first format versions leave the type out; the filled field tells it.
void infer_type(Attribute& a) {
  using Type = Attribute::Type;
  if (a.type != Type::undefined || !a.reference.empty()) return;
  if (!a.graphs.empty())
    a.type = Type::graph;
  else if (!a.tensors.empty())
    a.type = Type::tensor;
  else if (!a.ints.empty())
    a.type = Type::ints;
  else if (!a.floats.empty())
    a.type = Type::floats;
  else if (!a.strings.empty())
    a.type = Type::strings;
  else if (!a.s.empty())
    a.type = Type::string;
  else if (a.f != 0)
    a.type = Type::float_;
  else
    a.type = Type::int_;
}

Node read_node(pbf_reader r, int nesting) {
  Node n;
  while (r.next()) {
    switch (r.tag_and_type()) {
      case bytes(1):
        n.inputs.push_back(text(r));
        break;
      case bytes(2):
        n.outputs.push_back(text(r));
        break;
      case bytes(3):
        n.name = text(r);
        break;
      case bytes(4):
        n.op_type = text(r);
        break;
      case bytes(5):
        n.attributes.push_back(read_attribute(r.get_message(), nesting));
        infer_type(n.attributes.back());
        break;
      case bytes(7):
        n.domain = text(r);
        break;
      case bytes(8):
        n.overload = text(r);
        break;
      default:
        r.skip();
    }
  }
  return n;
}

Graph read_graph(pbf_reader r, int nesting) {
  if (nesting > max_nesting)
    throw UserError(fmt::format("graphs are nested deeper than {} levels", max_nesting));
  Graph g;
  while (r.next()) {
    switch (r.tag_and_type()) {
      case bytes(1):
        g.nodes.push_back(read_node(r.get_message(), nesting));
        break;
      case bytes(2):
        g.name = text(r);
        break;
      case bytes(5):
        g.initializers.push_back(read_tensor_message(r.get_message()));
        break;
      case bytes(11):
        g.inputs.push_back(read_value_info(r.get_message()));
        break;
      case bytes(12):
        g.outputs.push_back(read_value_info(r.get_message()));
        break;
      case bytes(13):
        g.value_info.push_back(read_value_info(r.get_message()));
        break;
      case bytes(15):
        ++g.sparse_initializers;
        r.skip();
        break;
      default:
        r.skip();
    }
  }
  return g;
}

OpsetImport read_opset(pbf_reader r) {
  OpsetImport opset;
  while (r.next()) {
    switch (r.tag_and_type()) {
      case bytes(1):
        opset.domain = text(r);
        break;
      case varint(2):
        opset.version = r.get_int64();
        break;
      default:
        r.skip();
    }
  }
  return opset;
}

Function read_function(pbf_reader r) {
  Function f;
  while (r.next()) {
    switch (r.tag_and_type()) {
      case bytes(1):
        f.name = text(r);
        break;
      case bytes(4):
        f.inputs.push_back(text(r));
        break;
      case bytes(5):
        f.outputs.push_back(text(r));
        break;
      case bytes(6):
        f.attributes.push_back(text(r));
        break;
      case bytes(7):
        f.nodes.push_back(read_node(r.get_message(), 1));
        break;
      case bytes(9):
        f.opsets.push_back(read_opset(r.get_message()));
        break;
      case bytes(10):
        f.domain = text(r);
        break;
      case bytes(11):
        f.attribute_defaults.push_back(read_attribute(r.get_message(), 1));
        break;
      case bytes(13):
        f.overload = text(r);
        break;
      default:
        r.skip();
    }
  }
  return f;
}

Model read_model_message(pbf_reader r) {
  Model m;
  bool has_graph = false;
  while (r.next()) {
    switch (r.tag_and_type()) {
      case varint(1):
        m.ir_version = r.get_int64();
        break;
      case bytes(2):
        m.producer = text(r);
        break;
      case bytes(3):
        m.producer_version = text(r);
        break;
      case bytes(7):
        if (has_graph) throw UserError("the file holds more than one graph");
        has_graph = true;
        m.graph = read_graph(r.get_message(), 0);
        break;
      case bytes(8):
        m.opsets.push_back(read_opset(r.get_message()));
        break;
      case bytes(14):
        m.metadata.push_back(read_key_value(r.get_message()));
        break;
      case bytes(25):
        m.functions.push_back(read_function(r.get_message()));
        break;
      default:
        r.skip();
    }
  }
  if (!has_graph) throw UserError("there is no graph in the file; is it an ONNX model?");
  return m;
}

pbf_reader reader_of(std::span<const std::byte> data) {
  // A protobuf message cannot be larger (weights beyond that are external data).
  if (data.size() > size_t{INT32_MAX})
    throw UserError("the file is larger than 2 GiB, which protobuf does not allow");
  return pbf_reader(reinterpret_cast<const char*>(data.data()), data.size());
}

// Runs `read` and turns whatever is wrong with the bytes into a UserError that names the file.
template <class Read>
auto guarded(const std::string& path, std::string_view what, Read read) {
  const std::string name = path.empty() ? "the model" : path;
  try {
    return read();
  } catch (const protozero::end_of_buffer_exception&) {
    throw UserError(fmt::format("{}: the file is cut short, or it is no ONNX {}", name, what),
                    {.file = path});
  } catch (const protozero::exception& e) {
    throw UserError(fmt::format("{}: damaged, or no ONNX {} ({})", name, what, e.what()), {.file = path});
  } catch (const UserError& e) {
    throw UserError(fmt::format("{}: {}", name, e.what()), {.file = path});
  } catch (const std::bad_alloc&) {
    throw UserError(fmt::format("{}: reading it needs more memory than there is", name), {.file = path});
  }
}

}  // namespace

Model read_model(std::span<const std::byte> data, std::shared_ptr<const void> owner,
                 const std::string& path) {
  Model model = guarded(path, "model", [&] { return read_model_message(reader_of(data)); });
  model.owner = std::move(owner);
  model.path = path;
  model.file_bytes = data.size();
  return model;
}

Model read_model(const std::string& path) {
  auto file = std::make_shared<const MappedFile>(path);
  const std::span<const std::byte> data = file->bytes();
  return read_model(data, std::move(file), path);
}

Tensor read_tensor(std::span<const std::byte> data, const std::string& path) {
  return guarded(path, "tensor", [&] { return read_tensor_message(reader_of(data)); });
}

}  // namespace fusewise::onnx
