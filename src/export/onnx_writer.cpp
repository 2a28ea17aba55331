// The protobuf form of what OnnxBuilder holds.
#include <fmt/core.h>

#include <fstream>
#include <protozero/pbf_writer.hpp>

#include "base/error.h"
#include "base/mapped_file.h"
#include "export/onnx_builder.h"

namespace fusewise {

namespace {

using protozero::pbf_writer;

// Above this the weights go to a file of their own; protobuf ends at 2 GiB.
constexpr uint64_t external_threshold = 1'500'000'000;
// Smaller tensors stay in the model file in any case.
constexpr uint64_t small_tensor = 1024;

uint64_t byte_size(const OnnxTensor& tensor) {
  uint64_t count = 1;
  for (int64_t d : tensor.dims) count *= static_cast<uint64_t>(d);
  return (count * static_cast<uint64_t>(bits_of(tensor.type)) + 7) / 8;
}

}  // namespace

class OnnxWriter {
 public:
  explicit OnnxWriter(std::ostream* external = nullptr, std::string location = "")
      : external_(external), location_(std::move(location)) {}

  std::string write(const OnnxBuilder& model) {
    std::string out;
    pbf_writer w(out);
    w.add_int64(1, model.ir_version);
    w.add_string(2, model.producer);
    {
      pbf_writer graph(w, 7);
      write_graph(graph, model);
    }
    for (const auto& [domain, version] : model.opsets) write_opset(w, 8, domain, version);
    for (const OnnxFunction& f : model.functions) {
      pbf_writer function(w, 25);
      function.add_string(1, f.name);
      for (const std::string& name : f.inputs) function.add_string(4, name);
      for (const std::string& name : f.outputs) function.add_string(5, name);
      for (const std::string& name : f.attributes) function.add_string(6, name);
      for (const OnnxNode& node : f.nodes) write_node(function, 7, node);
      write_opset(function, 9, "", f.opset);
      function.add_string(10, f.domain);
    }
    return out;
  }

 private:
  static void write_opset(pbf_writer& w, uint32_t tag, const std::string& domain, int64_t version) {
    pbf_writer opset(w, tag);
    opset.add_string(1, domain);
    opset.add_int64(2, version);
  }

  void write_graph(pbf_writer& w, const OnnxGraphBuilder& graph) {
    for (const OnnxNode& node : graph.nodes) write_node(w, 1, node);
    w.add_string(2, graph.name);
    for (const OnnxTensor& tensor : graph.initializers) write_tensor(w, 5, tensor);
    for (const auto& info : graph.inputs_) write_info(w, 11, info);
    for (const auto& info : graph.outputs_) write_info(w, 12, info);
  }

  static void write_info(pbf_writer& w, uint32_t tag, const OnnxGraphBuilder::Info& info) {
    pbf_writer value(w, tag);
    value.add_string(1, info.name);
    pbf_writer type(value, 2);
    pbf_writer tensor(type, 1);
    tensor.add_enum(1, onnx_element_type(info.type));
    if (!info.has_shape) return;
    std::string shape;  // as text first: an empty message has a meaning here, and a nested writer drops it
    pbf_writer dims(shape);
    for (const OnnxDim& dim : info.shape) {
      std::string text;
      pbf_writer d(text);
      if (const int64_t* constant = std::get_if<int64_t>(&dim)) {
        d.add_int64(1, *constant);
      } else if (const auto& symbol = std::get<std::string>(dim); !symbol.empty()) {
        d.add_string(2, symbol);
      }
      dims.add_message(1, text);
    }
    tensor.add_message(2, shape);
  }

  void write_node(pbf_writer& w, uint32_t tag, const OnnxNode& node) {
    pbf_writer n(w, tag);
    for (const std::string& name : node.inputs) n.add_string(1, name);
    for (const std::string& name : node.outputs) n.add_string(2, name);
    n.add_string(3, node.name);
    n.add_string(4, node.op_type);
    for (const OnnxAttribute& attribute : node.attributes) write_attribute(n, attribute);
    if (!node.domain.empty()) n.add_string(7, node.domain);
  }

  // The alternatives of OnnxAttributeValue in order, as AttributeProto.AttributeType numbers them.
  static constexpr int32_t attribute_types[] = {2, 1, 3, 7, 6, 8, 4, 5};

  void write_attribute(pbf_writer& w, const OnnxAttribute& attribute) {
    pbf_writer a(w, 5);
    a.add_string(1, attribute.name);
    a.add_enum(20, attribute_types[attribute.value.index()]);
    if (!attribute.refers_to.empty()) {
      a.add_string(21, attribute.refers_to);
      return;
    }
    switch (attribute.value.index()) {
      case 0:
        a.add_int64(3, std::get<0>(attribute.value));
        break;
      case 1:
        a.add_float(2, std::get<1>(attribute.value));
        break;
      case 2:
        a.add_bytes(4, std::get<2>(attribute.value));
        break;
      case 3:
        for (int64_t v : std::get<3>(attribute.value)) a.add_int64(8, v);
        break;
      case 4:
        for (float v : std::get<4>(attribute.value)) a.add_float(7, v);
        break;
      case 5:
        for (const std::string& v : std::get<5>(attribute.value)) a.add_bytes(9, v);
        break;
      case 6:
        write_tensor(a, 5, std::get<6>(attribute.value));
        break;
      default: {
        pbf_writer graph(a, 6);
        write_graph(graph, *std::get<7>(attribute.value));
      }
    }
  }

  void write_tensor(pbf_writer& w, uint32_t tag, const OnnxTensor& tensor) {
    const uint64_t size = tensor.external.empty() ? byte_size(tensor) : 0;
    std::string data(static_cast<size_t>(size), '\0');
    if (tensor.fill) tensor.fill({reinterpret_cast<std::byte*>(data.data()), data.size()});
    pbf_writer t(w, tag);
    t.add_packed_int64(1, tensor.dims.begin(), tensor.dims.end());
    t.add_int32(2, onnx_element_type(tensor.type));
    t.add_string(8, tensor.name);
    const auto entry = [&](const std::string& key, const std::string& value) {
      pbf_writer e(t, 13);
      e.add_string(1, key);
      e.add_string(2, value);
    };
    if (!tensor.external.empty()) {
      for (const auto& [key, value] : tensor.external) entry(key, value);
      t.add_enum(14, 1);
      return;
    }
    if (!external_ || size < small_tensor) {
      t.add_bytes(9, data);
      return;
    }
    external_->write(data.data(), static_cast<std::streamsize>(data.size()));
    entry("location", location_);
    entry("offset", std::to_string(offset_));
    entry("length", std::to_string(size));
    t.add_enum(14, 1);
    offset_ += size;
  }

  std::ostream* external_;
  std::string location_;
  uint64_t offset_ = 0;
};

std::string OnnxBuilder::serialize() const { return OnnxWriter().write(*this); }

void OnnxBuilder::write(const std::filesystem::path& path) const {
  uint64_t total = 0;
  for (const OnnxTensor& tensor : initializers) total += byte_size(tensor);
  if (total <= external_threshold) {
    write_file_atomically(path, serialize());
    return;
  }
  std::filesystem::path data_path = path;
  data_path += ".data";
  std::ofstream data(data_path, std::ios::binary);
  const std::string model = OnnxWriter(&data, data_path.filename().string()).write(*this);
  data.close();
  if (!data)
    throw UserError(fmt::format("{}: cannot be written", data_path.string()), {.file = data_path.string()});
  write_file_atomically(path, model);
}

}  // namespace fusewise
