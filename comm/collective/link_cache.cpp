// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/link_cache.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace gpups::comm {
namespace {

namespace fs = std::filesystem;

// What is measured now is better than what is older.
constexpr std::chrono::hours kAgeMax{24 * 30};
// Longer files are none of ours.
constexpr std::uintmax_t kFileBytesMax = 1 << 16;
// Of these costs; another one when they mean something else.
constexpr char const* kFirstLine = "gpups links 3";

std::string digest_of(std::string const& text) { return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size())); }

// First line, key, a line of hexadecimal floats, and a digest of all before it.
std::string text_of(std::string const& key, LinkModel const& model) {
  std::string text = fmt::format("{}\n{}\n", kFirstLine, key);
  for (auto const cost : kLinkCosts) text += fmt::format("{:a} ", model.*cost);
  text += '\n';
  return text + digest_of(text) + "\n";
}

std::optional<std::string> read_whole(fs::path const& file) {
  std::error_code error;
  auto const bytes = fs::file_size(file, error);
  if (error || bytes > kFileBytesMax) return std::nullopt;
  auto const written = fs::last_write_time(file, error);
  if (error || fs::file_time_type::clock::now() - written > kAgeMax) return std::nullopt;
  std::ostringstream text;
  text << std::ifstream(file, std::ios::binary).rdbuf();
  return text.str();
}

// The costs in a text that begins as it should; the comparison with what would be written finds everything else.
std::optional<LinkModel> costs_in(std::string const& text, std::string const& head) {
  if (!text.starts_with(head)) return std::nullopt;
  LinkModel model;
  char const* next = text.c_str() + head.size();
  for (auto const cost : kLinkCosts) {
    char* end = nullptr;
    model.*cost = std::strtod(next, &end);
    if (end == next || !std::isfinite(model.*cost) || model.*cost <= 0) return std::nullopt;
    next = end;
  }
  return model;
}

}  // namespace

fs::path LinkCache::file_of(std::string const& key) const {
  return folder_ / fmt::format("links-{:016x}", XXH3_64bits(key.data(), key.size()));
}

std::optional<LinkModel> LinkCache::find(std::string const& key) const {
  if (folder_.empty()) return std::nullopt;
  auto const text = read_whole(file_of(key));
  if (!text) return std::nullopt;
  auto const model = costs_in(*text, fmt::format("{}\n{}\n", kFirstLine, key));
  return model && text_of(key, *model) == *text ? model : std::nullopt;
}

// Beside its place and then into it: a reader sees the old one or the new one.
void LinkCache::put(std::string const& key, LinkModel const& model) const {
  if (folder_.empty()) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  fs::path const file = file_of(key);
  fs::path const beside = fmt::format("{}.{}.{}", file.string(), ::getpid(), fmt::ptr(this));
  std::ofstream out(beside, std::ios::binary);
  out << text_of(key, model);
  out.close();
  if (out.good()) fs::rename(beside, file, error);
  if (!out.good() || error) fs::remove(beside, error);
}

fs::path user_cache_folder() {
  auto const value = [](char const* name) { return std::getenv(name); };
  if (char const* const folder = value("GPUPS_CACHE_DIR")) return folder;
  if (char const* const folder = value("XDG_CACHE_HOME"); folder != nullptr && *folder == '/') {
    return fs::path(folder) / "gpups";
  }
  if (char const* const home = value("HOME"); home != nullptr && *home == '/') return fs::path(home) / ".cache/gpups";
  return {};
}

}  // namespace gpups::comm
