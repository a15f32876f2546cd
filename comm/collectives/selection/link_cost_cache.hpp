// SPDX-License-Identifier: Apache-2.0
// Link costs that an earlier job measured: a small file for each set of ranks' places, which stays until the user
// deletes it. A damaged file, or one of another version, counts as absent. Several jobs may write at once.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "comm/collectives/selection/link_costs.hpp"

namespace gpups::comm {

class LinkCostCache {
 public:
  // An empty folder keeps nothing.
  explicit LinkCostCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // key: a line that identifies the links.
  std::optional<LinkCosts> find(std::string const& key) const;
  // Ignores what cannot be written.
  void put(std::string const& key, LinkCosts const& model) const;
  std::filesystem::path file_of(std::string const& key) const;

 private:
  std::filesystem::path folder_;
};

// GPUPS_CACHE_DIR (empty: keep nothing), else XDG_CACHE_HOME/gpups, else HOME/.cache/gpups.
std::filesystem::path user_cache_folder();

}  // namespace gpups::comm
