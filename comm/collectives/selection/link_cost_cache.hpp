// SPDX-License-Identifier: Apache-2.0
// A cache of link costs that earlier jobs measured: one small file for each set of links, which stays until the user
// deletes it. A damaged file, or one of another version, counts as absent. Several jobs may write at the same time.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "comm/collectives/selection/link_costs.hpp"

namespace gpups::comm {

// The cache in one folder. Does not throw if files cannot be read or written.
class LinkCostCache {
 public:
  // With an empty folder name, nothing is cached.
  explicit LinkCostCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Returns the costs of the links that the line `key` identifies; nullopt if there are none.
  std::optional<LinkCosts> find(std::string const& key) const;
  // Saves the costs. Ignores errors.
  void put(std::string const& key, LinkCosts const& model) const;
  // Returns the path of the file for a key.
  std::filesystem::path file_of(std::string const& key) const;

 private:
  std::filesystem::path folder_;
};

// Returns GPUPS_CACHE_DIR (empty: no cache), else XDG_CACHE_HOME/gpups, else HOME/.cache/gpups.
std::filesystem::path user_cache_folder();

}  // namespace gpups::comm
