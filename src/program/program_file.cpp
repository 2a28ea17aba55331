#include "program/program_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "base/mapped_file.h"
#include "program/container.h"
#include "program/tables.h"

namespace fusewise::program {
namespace {

// By constant: does a run step read it?
std::vector<uint8_t> constants_of_runs(const Program& program) {
  std::vector<uint8_t> used(program.constants.size(), 0);
  const std::vector<uint8_t> needed = needed_in_runs(program);
  for (size_t i = 0; i < program.buffers.size(); ++i)
    if (program.buffers[i].kind == BufferKind::constant && needed[i]) used[program.buffers[i].index] = 1;
  return used;
}

// In pieces, so that hashing what lies in a file does not bring all of it into memory.
Hash128 hash_of(const Constant& constant) {
  constexpr size_t piece = size_t{8} << 20;
  Hasher hasher;
  for (std::span<const std::byte> rest = constant.bytes.span; !rest.empty();) {
    const std::span<const std::byte> now = rest.first(std::min(piece, rest.size()));
    hasher.add_bytes(now);
    if (constant.file) drop_pages(now);
    rest = rest.subspan(now.size());
  }
  return hasher.finish();
}

// Which form each constant has in the file: a reference, bytes, or neither where no run needs it.
void settle_constants(Program& program, const SaveOptions& options) {
  const bool runs_only = has_once_results(program);
  const std::vector<uint8_t> used = constants_of_runs(program);
  for (size_t i = 0; i < program.constants.size(); ++i) {
    Constant& constant = program.constants[i];
    const bool here = constant.bytes.span.size() == constant.size;
    if (constant.hash == Hash128{} && here) constant.hash = hash_of(constant);
    if (options.embed_constants && here) constant.file.reset();
    if (constant.file || (runs_only && !used[i])) {
      constant.bytes = {};
      continue;
    }
    check(here, "the bytes of constant '" + constant.name + "' are needed and not here");
  }
}

void settle_library(Program& program) {
  if (program.library.path.empty() || !program.library.bytes.span.empty()) return;
  const auto file = std::make_shared<const MappedFile>(program.library.path);
  program.library.bytes = {file->bytes(), file};
}

class ConstantFiles {
 public:
  explicit ConstantFiles(const LoadOptions& options) : options_(options) {}

  void open(Constant& constant) {
    const FileRegion& region = *constant.file;
    File& file = files_[region.path];
    if (!file.mapping) {
      file.mapping = std::make_shared<const MappedFile>(region.path);
      file.now = describe_file_region(region.path, 0, 0);
    }
    const std::span<const std::byte> bytes = file.mapping->bytes();
    if (region.offset > bytes.size() || region.length > bytes.size() - region.offset)
      throw UserError(
          fmt::format("{}, which has its constant '{}', is too short", region.path, constant.name));
    constant.bytes = {bytes.subspan(region.offset, region.length), file.mapping};
    const bool same = file.now.file_size == region.file_size && file.now.modified_ns == region.modified_ns &&
                      file.now.inode == region.inode;
    if (same || !options_.verify_constants) return;
    if (hash_of(constant) != constant.hash)
      throw UserError(fmt::format("constant '{}' in {} has changed since", constant.name, region.path));
  }

 private:
  struct File {
    std::shared_ptr<const MappedFile> mapping;
    FileRegion now;
  };
  const LoadOptions& options_;
  std::map<std::string, File> files_;
};

void check_sizes(const Program& program) {
  for (const Constant& constant : program.constants) {
    if (constant.file && constant.file->length != constant.size) throw UserError("its tables are damaged");
    if (!constant.bytes.span.empty() && constant.bytes.span.size() != constant.size)
      throw UserError("its tables are damaged");
  }
}

void open_constants(Program& program, const LoadOptions& options) {
  const bool runs_only = has_once_results(program);
  const std::vector<uint8_t> used = constants_of_runs(program);
  ConstantFiles files(options);
  for (size_t i = 0; i < program.constants.size(); ++i) {
    Constant& constant = program.constants[i];
    if ((runs_only && !used[i]) || constant.size == 0) continue;
    if (constant.file)
      files.open(constant);
    else if (constant.bytes.span.empty())
      throw UserError("it lacks constant '" + constant.name + "'");
  }
}

Program load_mapped(const std::shared_ptr<const MappedFile>& file, const LoadOptions& options) {
  const std::span<const std::byte> bytes = file->bytes();
  const Header header = read_header(bytes);
  const std::span<const std::byte> front = bytes.first(header.front_bytes);
  const std::span<const std::byte> data = bytes.subspan(header.front_bytes);
  if (hash_front(front) != header.front_hash)
    throw UserError("it is damaged: the checksum of its tables differs");

  const size_t table_bytes = front.size() - sizeof(Header) - header.padding;
  Decoder decoder(front.subspan(sizeof(Header), table_bytes), data, file);
  Program program;
  transfer(decoder, program);
  decoder.expect_end();
  if (options.verify_data) {
    std::vector<std::span<const std::byte>> sections;
    uint64_t end = 0;
    for (const Section& section : decoder.sections) {
      const auto gap = data.subspan(end, section.offset - end);
      if (std::any_of(gap.begin(), gap.end(), [](std::byte value) { return value != std::byte{0}; }))
        throw UserError("it is damaged: something stands between its data");
      sections.push_back(data.subspan(section.offset, section.length));
      end = section.offset + section.length;
    }
    if (end != data.size() || hash_sections(sections) != header.data_hash)
      throw UserError("it is damaged: the checksum of its data differs");
  }
  check_sizes(program);
  verify(program);
  open_constants(program, options);
  return program;
}

}  // namespace

void save(const Program& original, const std::filesystem::path& path, const SaveOptions& options) {
  verify(original);
  Program program = original;
  settle_constants(program, options);
  settle_library(program);
  Encoder encoder;
  transfer(encoder, program);

  Header header = make_header(encoder.bytes.size(), encoder.data_bytes);
  header.data_hash = hash_sections(encoder.sections);
  std::vector<std::byte> front(header.front_bytes, std::byte{0});
  std::copy(encoder.bytes.begin(), encoder.bytes.end(), front.begin() + sizeof(Header));
  std::memcpy(front.data(), &header, sizeof(Header));
  header.front_hash = hash_front(front);
  std::memcpy(front.data(), &header, sizeof(Header));

  constexpr std::array<std::byte, section_alignment> zeros{};
  std::vector<std::span<const std::byte>> pieces = {front};
  uint64_t end = 0;
  for (const std::span<const std::byte> section : encoder.sections) {
    const uint64_t gap = (section_alignment - end % section_alignment) % section_alignment;
    pieces.push_back(std::span(zeros).first(gap));
    pieces.push_back(section);
    end += gap + section.size();
  }
  write_file_atomically(path, pieces);
}

Program load(const std::filesystem::path& path, const LoadOptions& options) {
  try {
    return load_mapped(std::make_shared<const MappedFile>(path), options);
  } catch (const UserError& error) {
    const std::string name = path.string();
    if (error.context.file == name) throw;
    throw UserError(fmt::format("cannot load {}: {}", name, error.what()),
                    {name, {}, {}, "compile the model again"});
  } catch (const UnsupportedError& error) {
    throw UserError(fmt::format("cannot load {}: {}", path.string(), error.what()),
                    {path.string(), {}, {}, {}});
  } catch (const InternalError& error) {
    throw UserError(fmt::format("cannot load {}: {}", path.string(), error.what()),
                    {path.string(), {}, {}, {}});
  }
}

}  // namespace fusewise::program
