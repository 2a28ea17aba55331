#include "program/program.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "base/error.h"

namespace fusewise::program {

Bytes own_bytes(std::vector<std::byte> bytes) {
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return {std::span<const std::byte>(*owner), owner};
}

FileRegion describe_file_region(const std::string& path, uint64_t offset, uint64_t length) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0)
    throw UserError(fmt::format("cannot read {}: {}", path, std::generic_category().message(errno)),
                    {path, {}, {}, {}});
  FileRegion region;
  region.path = path;
  region.offset = offset;
  region.length = length;
  region.file_size = static_cast<uint64_t>(status.st_size);
  region.modified_ns = int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  region.inode = status.st_ino;
  if (offset > region.file_size || length > region.file_size - offset)
    throw UserError(fmt::format("{} is too short: {} bytes at {} are needed and it has {}", path, length,
                                offset, region.file_size),
                    {path, {}, {}, "the file was cut or replaced; load the model again"});
  return region;
}

std::vector<uint8_t> needed_in_runs(const Program& program) {
  std::vector<uint8_t> needed(program.buffers.size(), 0);
  for (const Step& step : program.run_steps)
    for (const BufferId buffer : step.buffers) needed[buffer] = needed[root_of(program, buffer)] = 1;
  return needed;
}

bool has_once_results(const Program& program) {
  const std::vector<uint8_t> needed = needed_in_runs(program);
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    if (buffer.kind != BufferKind::once || !needed[i] || buffer.bytes.is(0)) continue;
    if (buffer.content.span.empty()) return false;
  }
  return true;
}

std::string_view name_of(BufferKind kind) {
  switch (kind) {
    case BufferKind::input:
      return "input";
    case BufferKind::output:
      return "output";
    case BufferKind::constant:
      return "constant";
    case BufferKind::once:
      return "once";
    case BufferKind::arena:
      return "arena";
    case BufferKind::dims:
      return "dims";
    case BufferKind::view:
      return "view";
    case BufferKind::moving:
      return "moving";
  }
  return "unknown";
}

std::string describe_buffer(const Program& program, BufferId buffer) {
  if (buffer >= program.buffers.size()) return fmt::format("buffer {}", buffer);
  return fmt::format("{} buffer {} '{}'", name_of(program.buffers[buffer].kind), buffer,
                     program.buffers[buffer].name);
}

}  // namespace fusewise::program
