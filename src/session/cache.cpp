#include "session/cache.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "program/program_file.h"

namespace fusewise::session {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

// Why programs from this folder must not be run or cannot be kept there; empty when all is well.
std::string objection_to(const fs::path& folder) {
  struct stat status{};
  if (::stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return "it is no folder";
  if (status.st_uid != ::geteuid() && status.st_uid != 0) return "it belongs to another user";
  if ((status.st_mode & S_IWOTH) != 0) return "everybody may write to it";
  if (::access(folder.c_str(), W_OK | X_OK) != 0) return "it is not writable";
  return {};
}

nlohmann::json to_json(const FileIdentity& file) {
  return {{"path", file.path},
          {"size", file.size},
          {"inode", file.inode},
          {"modified_ns", file.modified_ns},
          {"changed_ns", file.changed_ns}};
}

FileIdentity identity_from(const nlohmann::json& json) {
  return {json.at("path"), json.at("size"), json.at("inode"), json.at("modified_ns"), json.at("changed_ns")};
}

// Temporary files of writers that ended in the middle.
bool is_abandoned(const fs::directory_entry& entry) {
  std::error_code error;
  const auto age = fs::file_time_type::clock::now() - entry.last_write_time(error);
  return !error && entry.path().extension() == ".tmp" && age > std::chrono::hours(1);
}

}  // namespace

std::optional<fs::path> default_cache_folder() {
  if (const auto folder = environment("FUSEWISE_CACHE_DIR")) return *folder;
  if (const auto folder = environment("XDG_CACHE_HOME")) return fs::path(*folder) / "fusewise";
  if (const auto home = environment("HOME")) return fs::path(*home) / ".cache" / "fusewise";
  return std::nullopt;
}

uint64_t cache_limit(const Warn& warn) {
  constexpr uint64_t otherwise = uint64_t{8} << 30;
  const auto text = environment("FUSEWISE_CACHE_LIMIT");
  if (!text) return otherwise;
  uint64_t number = 0;
  const char* end = text->data() + text->size();
  auto [stop, error] = std::from_chars(text->data(), end, number);
  int shift = 0;
  constexpr std::string_view units = "KMGT";
  if (error == std::errc() && stop != end) {
    const size_t unit = units.find(static_cast<char>(std::toupper(static_cast<unsigned char>(*stop))));
    if (unit != std::string_view::npos) {
      shift = 10 * (static_cast<int>(unit) + 1);
      ++stop;
    }
  }
  if (error == std::errc() && stop == end && number <= UINT64_MAX >> shift) return number << shift;
  warn(fmt::format("FUSEWISE_CACHE_LIMIT: '{}' is no size such as 500M or 2G", *text));
  return otherwise;
}

Cache::Cache(const fs::path& folder, uint64_t limit, const Warn& warn)
    : folder_(folder), limit_(limit), warn_(warn) {
  std::error_code error;
  for (const char* part : {"programs", "models"}) {
    fs::create_directories(folder / part, error);
    const std::string why = error ? error.message() : objection_to(folder / part);
    if (why.empty()) continue;
    warn(fmt::format("the cache in {} is not used: {}", folder.string(), why));
    return;
  }
  if (const std::string why = objection_to(folder); !why.empty())
    warn(fmt::format("the cache in {} is not used: {}", folder.string(), why));
  else
    enabled_ = true;
}

fs::path Cache::path_of(const Hash128& key) const {
  return folder_ / "programs" / (key.to_hex() + ".program");
}

std::optional<program::Program> Cache::find(const Hash128& key) const {
  if (!enabled_) return std::nullopt;
  const fs::path path = path_of(key);
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  try {
    program::Program program = program::load(path);
    // What was used last is evicted last.
    fs::last_write_time(path, fs::file_time_type::clock::now(), error);
    return program;
  } catch (const UserError& problem) {
    log("cache", "{} is not used and made anew: {}", path.string(), problem.what());
    return std::nullopt;
  }
}

void Cache::store(const Hash128& key, const program::Program& program) const {
  if (!enabled_) return;
  const fs::path path = path_of(key);
  try {
    program::save(program, path);
  } catch (const UserError& problem) {
    warn_(fmt::format("the compiled program is not kept: {}", problem.what()));
    return;
  }
  evict(path);
}

void Cache::evict(const fs::path& keep) const {
  struct Entry {
    fs::path path;
    fs::file_time_type time;
    uint64_t size;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_ / "programs", error)) {
    std::error_code gone;  // another process may remove entries, too
    if (is_abandoned(entry)) fs::remove(entry.path(), gone);
    if (entry.path().extension() != ".program") continue;
    const auto time = entry.last_write_time(gone);
    const uint64_t size = gone ? 0 : entry.file_size(gone);
    if (gone) continue;
    total += size;
    if (entry.path() != keep) entries.push_back({entry.path(), time, size});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.time < b.time; });
  for (const Entry& entry : entries) {
    if (total <= limit_) break;
    if (fs::remove(entry.path, error)) total -= entry.size;
  }
}

fs::path Cache::model_file(const std::string& path) const {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error).lexically_normal();
  return folder_ / "models" / (hash_text(absolute.string()).to_hex() + ".json");
}

std::optional<Hash128> Cache::find_model(const std::string& path) const {
  if (!enabled_) return std::nullopt;
  const fs::path file = model_file(path);
  std::error_code error;
  if (!fs::exists(file, error)) return std::nullopt;
  try {
    const MappedFile mapped(file);
    const nlohmann::json document = nlohmann::json::parse(mapped.text());
    for (const nlohmann::json& row : document.at("files")) {
      const FileIdentity known = identity_from(row);
      if (identify(known.path) != known) return std::nullopt;
    }
    return Hash128::from_hex(document.at("hash").get<std::string>());
  } catch (const UserError&) {
    return std::nullopt;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

void Cache::store_model(const std::string& path, const std::vector<FileIdentity>& files,
                        const Hash128& hash) const {
  if (!enabled_) return;
  nlohmann::json document = {{"files", nlohmann::json::array()}, {"hash", hash.to_hex()}};
  const int64_t now = std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  for (const FileIdentity& file : files) {
    // Written just now: it may be written again without a change of its times, whose clock has coarse steps.
    if (std::abs(now - file.changed_ns) < 100'000'000) return;
    document["files"].push_back(to_json(file));
  }
  try {
    write_file_atomically(model_file(path), std::string_view(document.dump(
                                                1, ' ', false, nlohmann::json::error_handler_t::replace)));
  } catch (const UserError& problem) {
    log("cache", "what is known of {} is not kept: {}", path, problem.what());
  }
}

}  // namespace fusewise::session
