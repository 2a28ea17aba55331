#include "region_runner.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <span>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "codegen/codegen.h"
#include "graph/form.h"
#include "graph/interpreter/interpreter.h"
#include "kernel/interpreter.h"
#include "kernel/passes/pipeline.h"
#include "kernel/synchronization.h"
#include "kernel/verifier.h"

namespace fusewise::test {

using graph::Tensor;
using graph::Value;
using schedule::Layout;

graph::Region whole_region(const graph::Graph& graph) {
  graph::Region region;
  for (graph::NodeId n = 0; n < graph.size(); ++n)
    if (graph::has_form(graph, n)) region.nodes.push_back(n);
  for (const graph::GraphOutput& o : graph.outputs) region.outputs.push_back(o.value);
  std::sort(region.outputs.begin(), region.outputs.end());
  region.outputs.erase(std::unique(region.outputs.begin(), region.outputs.end()), region.outputs.end());
  return region;
}

namespace {

// Members in between: what depends on a member, and what a member depends on.
void close(const graph::Graph& graph, std::vector<bool>& member) {
  std::vector<bool> after(member), before(member);
  for (graph::NodeId n = 0; n < graph.size(); ++n)
    for (Value v : graph.node(n).operands)
      if (after[v.node]) after[n] = true;
  for (graph::NodeId n = static_cast<graph::NodeId>(graph.size()); n-- > 0;)
    if (before[n])
      for (Value v : graph.node(n).operands) before[v.node] = true;
  for (graph::NodeId n = 0; n < graph.size(); ++n) member[n] = after[n] && before[n];
}

}  // namespace

graph::Region random_part(const graph::Graph& graph, Random& random) {
  const auto users = graph::users(graph);
  std::vector<graph::NodeId> nodes;
  for (graph::NodeId n = 0; n < graph.size(); ++n)
    if (graph::has_form(graph, n)) nodes.push_back(n);
  std::vector<bool> member(graph.size(), false);
  std::vector<graph::NodeId> grown = {random.one_of(nodes)};
  member[grown[0]] = true;
  for (int64_t more = random.between(0, 12); more > 0; --more) {
    const graph::NodeId from = random.one_of(grown);
    std::vector<graph::NodeId> next = users[from];
    for (Value v : graph.node(from).operands) next.push_back(v.node);
    if (next.empty()) continue;
    const graph::NodeId n = random.one_of(next);
    if (!graph::has_form(graph, n) || member[n]) continue;
    member[n] = true;
    grown.push_back(n);
  }
  close(graph, member);
  // What is read outside is an output, and now and then something that nobody asked for.
  graph::Region region;
  std::vector<bool> needed(graph.size(), false);
  for (const graph::GraphOutput& o : graph.outputs) needed[o.value.node] = true;
  for (graph::NodeId n = 0; n < graph.size(); ++n)
    if (!member[n])
      for (Value v : graph.node(n).operands) needed[v.node] = true;
  for (graph::NodeId n : nodes)
    if (member[n] && (needed[n] || users[n].empty() || random.chance(8))) region.outputs.push_back({n, 0});
  for (Value v : region.outputs) needed[v.node] = true;
  for (graph::NodeId n = static_cast<graph::NodeId>(graph.size()); n-- > 0;) {
    if (!member[n] || !needed[n]) continue;
    region.nodes.push_back(n);
    for (Value v : graph.node(n).operands) needed[v.node] = true;
  }
  std::reverse(region.nodes.begin(), region.nodes.end());
  return region;
}

namespace {

int64_t physical_count(const Layout& layout, const std::vector<int64_t>& shape) {
  Shape dims(shape.begin(), shape.end());
  return schedule::physical_elements(layout, dims).value();
}

int64_t physical_index(const Layout& layout, const std::vector<int64_t>& shape,
                       const std::vector<int64_t>& at) {
  std::vector<int64_t> block(shape.size(), 1);
  for (const Layout::Block& b : layout.blocks) block[static_cast<size_t>(b.dim)] = b.block;
  int64_t index = 0;
  for (size_t d = 0; d < layout.strides.size(); ++d) index += at[d] * layout.strides[d].value();
  if (!layout.strides.empty()) return index;
  for (int d : layout.order) {
    const auto i = static_cast<size_t>(d);
    index = index * ((shape[i] + block[i] - 1) / block[i]) + at[i] / block[i];
  }
  for (const Layout::Block& b : layout.blocks)
    index = index * b.block + at[static_cast<size_t>(b.dim)] % b.block;
  return index;
}

template <class F>
void each_element(const std::vector<int64_t>& shape, F&& f) {
  std::vector<int64_t> at(shape.size(), 0);
  const int64_t count = graph::element_count(shape);
  for (int64_t i = 0; i < count; ++i) {
    f(i, at);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
}

// Memory whose end (and, for whole pages, beginning) borders on inaccessible pages, filled with NaN bytes.
class Guarded {
 public:
  explicit Guarded(size_t bytes) : bytes_(bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    span_ = (bytes + page - 1) / page * page + 2 * page;
    base_ =
        static_cast<char*>(mmap(nullptr, span_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    check(base_ != MAP_FAILED, "no memory for a guarded buffer");
    mprotect(base_, page, PROT_NONE);
    mprotect(base_ + span_ - page, page, PROT_NONE);
    std::memset(base_ + page, 0xFF, span_ - 2 * page);
    data_ = base_ + span_ - page - bytes;
  }
  Guarded(Guarded&& other) noexcept
      : bytes_(other.bytes_),
        span_(other.span_),
        base_(std::exchange(other.base_, nullptr)),
        data_(other.data_) {}
  ~Guarded() {
    if (base_) munmap(base_, span_);
  }
  char* data() { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0, span_ = 0;
  char* base_ = nullptr;
  char* data_ = nullptr;
};

bool same_element(DataType type, const std::byte* a, const std::byte* b) {
  const auto size = static_cast<size_t>(bytes_of(type));
  if (std::memcmp(a, b, size) == 0) return true;
  if (!is_float(type)) return false;
  const Scalar x = load_scalar(a, type), y = load_scalar(b, type);
  return std::isnan(x.f) && std::isnan(y.f);
}

// Within the bound of the interpreter in double precision, NaN and infinities as the reference has them.
std::string compare_bounded(const RegionOracle& oracle, Value v, const char* buffer) {
  const Layout layout = oracle.layout_of(v);
  const std::vector<int64_t> shape = oracle.shape_of(v);
  Tensor physical(oracle.graph->type(v).element, {physical_count(layout, shape)});
  auto bytes = physical.mutable_bytes();
  std::ranges::copy(std::as_bytes(std::span(buffer, bytes.size())), bytes.begin());
  const Tensor actual = from_layout(physical, layout, shape);
  const Tensor& reference = oracle.values.at(v);
  const auto size = static_cast<size_t>(bytes_of(actual.element));
  if (is_float(actual.element))
    for (int64_t i = 0; i < actual.count(); ++i) {
      const size_t at = static_cast<size_t>(i) * size;
      const double got = load_scalar(actual.bytes().data() + at, actual.element).f;
      const double want = load_scalar(reference.bytes().data() + at, actual.element).f;
      if (std::isfinite(want) ? !std::isfinite(got) : std::isnan(want) ? !std::isnan(got) : got != want)
        return fmt::format("value {} element {} is {}, wanted {}", v.node, i, got, want);
    }
  const graph::Deviation worst = graph::worst_deviation(oracle.bounded.at(v), actual);
  if (worst.within()) return {};
  return fmt::format("value {} element {} is {}, wanted {} within {}", v.node, worst.index, worst.actual,
                     worst.value, worst.bound);
}

std::vector<Guarded> buffers_of(const RegionOracle& oracle, const schedule::LoweredKernel& lowered) {
  std::vector<Guarded> result;
  for (const std::vector<char>& bytes : argument_bytes(oracle, lowered)) {
    result.emplace_back(bytes.size());
    std::copy(bytes.begin(), bytes.end(), result.back().data());
  }
  return result;
}

std::string compare(const RegionOracle& oracle, const schedule::LoweredKernel& lowered,
                    std::vector<Guarded>& buffers) {
  std::vector<const char*> arguments;
  for (Guarded& b : buffers) arguments.push_back(b.data());
  return compare_arguments(oracle, lowered, arguments);
}

}  // namespace

std::vector<std::vector<char>> argument_bytes(const RegionOracle& oracle,
                                              const schedule::LoweredKernel& lowered) {
  std::vector<std::vector<char>> result;
  for (Value v : lowered.arguments) {
    const auto size = static_cast<size_t>(bytes_of(oracle.graph->type(v).element));
    result.emplace_back(static_cast<size_t>(physical_count(oracle.layout_of(v), oracle.shape_of(v))) * size,
                        '\xFF');
    if (!oracle.is_input(v)) continue;
    const Tensor physical = to_layout(oracle.values.at(v), oracle.layout_of(v));
    std::copy_n(reinterpret_cast<const char*>(physical.bytes().data()), physical.bytes().size(),
                result.back().data());
  }
  for (const schedule::LoweredKernel::Partial& partial : lowered.partials)
    result.emplace_back(static_cast<size_t>(partial.elements.evaluate(oracle.symbols)) *
                            static_cast<size_t>(bytes_of(partial.element)),
                        '\xFF');
  return result;
}

std::string compare_arguments(const RegionOracle& oracle, const schedule::LoweredKernel& lowered,
                              std::span<const char* const> arguments) {
  for (size_t i = 0; i < lowered.arguments.size(); ++i) {
    const Value v = lowered.arguments[i];
    if (oracle.is_input(v) ||
        !std::binary_search(oracle.region.outputs.begin(), oracle.region.outputs.end(), v))
      continue;
    if (!oracle.bounded.empty()) {
      if (std::string wrong = compare_bounded(oracle, v, arguments[i]); !wrong.empty()) return wrong;
      continue;
    }
    const DataType type = oracle.graph->type(v).element;
    const auto size = static_cast<size_t>(bytes_of(type));
    const std::vector<int64_t> shape = oracle.shape_of(v);
    const Layout layout = oracle.layout_of(v);
    const Tensor& expected = oracle.values.at(v);
    std::string wrong;
    int64_t differing = 0;
    each_element(shape, [&](int64_t index, const std::vector<int64_t>& at) {
      const auto* got = reinterpret_cast<const std::byte*>(arguments[i]) +
                        static_cast<size_t>(physical_index(layout, shape, at)) * size;
      const auto* want = expected.bytes().data() + static_cast<size_t>(index) * size;
      if (same_element(type, got, want)) return;
      if (differing++ == 0) {
        const Scalar g = load_scalar(got, type), w = load_scalar(want, type);
        wrong =
            fmt::format("value {} element {} is {} ({}), wanted {} ({})", v.node, index, g.f, g.i, w.f, w.i);
      }
    });
    if (differing) return fmt::format("{}; {} of {} differ", wrong, differing, expected.count());
  }
  return {};
}

RegionOracle::RegionOracle(const graph::Graph& of_graph, graph::Region of_region,
                           const schedule::Layouts& of_layouts, const std::vector<Tensor>& inputs)
    : graph(&of_graph), layouts(&of_layouts), region(std::move(of_region)) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value v{graph->inputs[i].node, 0};
    values[v] = inputs[i];
    const Shape& shape = graph->type(v).shape;
    for (size_t d = 0; d < shape.size(); ++d)
      if (const auto symbol = shape[d].as_symbol()) symbols[*symbol] = inputs[i].shape[d];
  }
  for (graph::NodeId n = 0; n < graph->size(); ++n)
    if (const graph::ConstantData* data = graph::constant_of(*graph, {n, 0})) {
      std::vector<int64_t> shape;
      for (const Dim& d : data->type.shape) shape.push_back(d.value());
      values[{n, 0}] = Tensor::borrow(data->type.element, shape, data->bytes);
    }
  graph::InterpretOptions options;
  for (const Value v : graph::region_inputs(*graph, region))
    if (!values.count(v)) options.also.push_back(v);
  options.also.insert(options.also.end(), region.outputs.begin(), region.outputs.end());
  const std::vector<Tensor> results = graph::interpret(*graph, inputs, options);
  for (size_t i = 0; i < options.also.size(); ++i)
    values[options.also[i]] = results[graph->outputs.size() + i];
}

void RegionOracle::allow_any_order(const std::vector<Tensor>& inputs) {
  const std::vector<graph::BoundedTensor> expected = graph::interpret_bounded(*graph, inputs);
  for (size_t i = 0; i < graph->outputs.size(); ++i) bounded[graph->outputs[i].value] = expected[i];
}

Layout RegionOracle::layout_of(Value v) const {
  const auto it = layouts->find(v);
  return it != layouts->end() ? it->second : schedule::row_major(graph->type(v).rank());
}

std::vector<int64_t> RegionOracle::shape_of(Value v) const {
  std::vector<int64_t> shape;
  for (const Dim& d : graph->type(v).shape) shape.push_back(d.evaluate(symbols));
  return shape;
}

std::vector<int64_t> RegionOracle::parameters(const schedule::LoweredKernel& lowered) const {
  std::vector<int64_t> p;
  for (const Dim& d : lowered.parameters) p.push_back(d.evaluate(symbols));
  return p;
}

std::string RegionOracle::interpret(const schedule::LoweredKernel& lowered,
                                    const kernel::Kernel& kernel) const {
  try {
    kernel::verify(kernel);
    kernel::verify_synchronization(kernel);
    std::vector<Guarded> buffers = buffers_of(*this, lowered);
    std::vector<kernel::BufferArgument> arguments;
    for (size_t i = 0; i < buffers.size(); ++i)
      arguments.push_back({buffers[i].data(),
                           static_cast<int64_t>(buffers[i].bytes() /
                                                static_cast<size_t>(bytes_of(kernel.buffers[i].element)))});
    kernel::Interpreter(kernel).run(arguments, parameters(lowered));
    return compare(*this, lowered, buffers);
  } catch (const kernel::KernelFault& fault) {
    return fmt::format("fault: {} at {}", fault.what(), fault.statement);
  } catch (const std::exception& error) {
    return fmt::format("error: {}", error.what());
  }
}

CompiledKernels::CompiledKernels(std::span<const kernel::Kernel> kernels, const std::string& target,
                                 int threads) {
  static std::atomic<int> number = 0;
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("fusewise_region_{}_{}.so", getpid(), ++number);
  codegen::link_shared(codegen::compile_objects(kernels, codegen::target_named(target), threads), path);
  library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::filesystem::remove(path);
  check(library_ != nullptr, "a compiled kernel does not load");
}

CompiledKernels::~CompiledKernels() { dlclose(library_); }

std::string CompiledKernels::run(const RegionOracle& oracle, const schedule::LoweredKernel& lowered,
                                 const kernel::Kernel& kernel) const {
  std::vector<Guarded> buffers = buffers_of(oracle, lowered);
  std::vector<void*> pointers;
  for (Guarded& b : buffers) pointers.push_back(b.data());
  const std::vector<int64_t> parameters = oracle.parameters(lowered);
  SymbolValues named;
  for (size_t i = 0; i < kernel.parameters.size(); ++i) named[kernel.parameters[i]] = parameters[i];
  const auto scratch_bytes = static_cast<size_t>((kernel.scratch_bytes.evaluate(named) + 63) / 64 * 64);
  Guarded scratch(scratch_bytes);
  for (size_t phase = 0; phase < kernel.phases.size(); ++phase) {
    const auto run = reinterpret_cast<void (*)(void* const*, const int64_t*, char*, int64_t, int64_t)>(
        dlsym(library_, codegen::phase_symbol(kernel, phase).c_str()));
    const auto count = reinterpret_cast<int64_t (*)(const int64_t*)>(
        dlsym(library_, codegen::block_count_symbol(kernel, phase).c_str()));
    if (!run || !count) return "a phase's symbol is missing";
    const int64_t blocks = count(parameters.data());
    // Out of order and in uneven chunks, as several threads would.
    for (int64_t b = blocks; b > 0;) {
      const int64_t begin = std::max<int64_t>(0, b - 1 - b % 3);
      run(pointers.data(), parameters.data(), scratch.data(), begin, b);
      b = begin;
    }
  }
  return compare(oracle, lowered, buffers);
}

Tensor to_layout(const Tensor& tensor, const Layout& layout) {
  Tensor result(tensor.element, {physical_count(layout, tensor.shape)});
  const auto size = static_cast<size_t>(bytes_of(tensor.element));
  auto out = result.mutable_bytes();
  std::fill(out.begin(), out.end(), std::byte{0});
  each_element(tensor.shape, [&](int64_t index, const std::vector<int64_t>& at) {
    std::memcpy(out.data() + static_cast<size_t>(physical_index(layout, tensor.shape, at)) * size,
                tensor.bytes().data() + static_cast<size_t>(index) * size, size);
  });
  return result;
}

Tensor from_layout(const Tensor& physical, const Layout& layout, std::vector<int64_t> shape) {
  Tensor result(physical.element, shape);
  const auto size = static_cast<size_t>(bytes_of(physical.element));
  auto out = result.mutable_bytes();
  each_element(shape, [&](int64_t index, const std::vector<int64_t>& at) {
    std::memcpy(out.data() + static_cast<size_t>(index) * size,
                physical.bytes().data() + static_cast<size_t>(physical_index(layout, shape, at)) * size,
                size);
  });
  return result;
}

std::string check_region(const graph::Graph& graph, const graph::Region& region,
                         const schedule::Schedule& schedule, const schedule::Layouts& layouts,
                         const std::vector<Tensor>& inputs, const RegionRun& how) {
  const schedule::RegionForms forms = schedule::region_forms(graph, region);
  const schedule::TreeResult built = schedule::build_tree(forms, schedule, layouts);
  if (!built.verdict.allowed())
    return fmt::format("refused: {}: {}", built.verdict.code, built.verdict.detail);
  schedule::LowerOptions options;
  options.vector_lanes = how.vector_bits / 32;
  RegionOracle oracle(graph, region, layouts, inputs);
  if (how.any_order) oracle.allow_any_order(inputs);
  const schedule::LoweredKernel lowered = schedule::lower(forms, built.tree, options);
  const auto failed = [&](const char* where, const std::string& what, const kernel::Kernel& kernel) {
    return fmt::format("{}: {}\n{}", where, what, kernel::print(kernel));
  };
  if (how.interpret_lowered)
    if (const std::string wrong = oracle.interpret(lowered, lowered.kernel); !wrong.empty())
      return failed("lowered", wrong, lowered.kernel);
  if (!how.interpret_passed && !how.compile) return {};
  kernel::PassOptions passes;
  passes.vector_bits = how.vector_bits;
  kernel::Kernel passed = kernel::run_passes(lowered.kernel, passes);
  passed.name = "k";
  if (how.interpret_passed)
    if (const std::string wrong = oracle.interpret(lowered, passed); !wrong.empty())
      return failed("passed", wrong, passed);
  if (how.compile)
    if (const std::string wrong = CompiledKernels({&passed, 1}, how.target, 1).run(oracle, lowered, passed);
        !wrong.empty())
      return failed("compiled", wrong, passed);
  return {};
}

}  // namespace fusewise::test
