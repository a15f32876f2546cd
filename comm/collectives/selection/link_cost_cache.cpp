// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/selection/link_cost_cache.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace gpups::comm {
namespace {

namespace fs = std::filesystem;

std::string digest_of(std::string const& text) { return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size())); }

// The version number changes when costs change their meaning.
std::string head_of(std::string const& key) { return fmt::format("gpups links 4\n{}\n", key); }

// Returns the content of a file: the head, a line of hexadecimal floats, and a digest of the text before it.
std::string text_of(std::string const& key, LinkCosts const& model) {
  std::string text = head_of(key);
  for (auto const cost : kLinkCostMembers) text += fmt::format("{:a} ", model.*cost);
  return text + "\n" + digest_of(text) + "\n";
}

}  // namespace

fs::path LinkCostCache::file_of(std::string const& key) const { return folder_ / ("links-" + digest_of(key)); }

// Comparing the file with the text that put() writes finds any damage.
std::optional<LinkCosts> LinkCostCache::find(std::string const& key) const {
  std::ifstream in(file_of(key), std::ios::binary);
  std::string text;
  if (folder_.empty() || !std::getline(in, text, '\0')) return std::nullopt;
  LinkCosts model;
  char* next = text.data() + std::min(text.size(), head_of(key).size());
  for (auto const cost : kLinkCostMembers) model.*cost = std::strtod(next, &next);
  return is_possible(model) && text_of(key, model) == text ? std::optional(model) : std::nullopt;
}

// Writes another file and renames it, so that a reader sees either the old file or the new one.
void LinkCostCache::put(std::string const& key, LinkCosts const& model) const {
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
  if (char const* const folder = std::getenv("GPUPS_CACHE_DIR")) return folder;
  char const* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return fs::path(cache) / "gpups";
  char const* const home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? fs::path(home) / ".cache/gpups" : fs::path();
}

}  // namespace gpups::comm
