// SPDX-License-Identifier: Apache-2.0
// Models of links that an earlier job measured: a small file for each, in the user's cache folder. A file that is
// damaged, old or of another version is as if it were not there; several jobs may write at once.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "comm/collective/link_model.hpp"

namespace gpups::comm {

class LinkCache {
 public:
  // Empty: nothing is kept.
  explicit LinkCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // key: a line that says whose links they are.
  std::optional<LinkModel> find(std::string const& key) const;
  // What cannot be written is not kept.
  void put(std::string const& key, LinkModel const& model) const;

  // Where it is kept, for messages.
  std::filesystem::path file_of(std::string const& key) const;

 private:
  std::filesystem::path folder_;
};

// What GPUPS_CACHE_DIR says (empty: nowhere), else XDG_CACHE_HOME/gpups, else HOME/.cache/gpups.
std::filesystem::path user_cache_folder();

}  // namespace gpups::comm
