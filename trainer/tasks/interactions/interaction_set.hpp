// SPDX-License-Identifier: Apache-2.0
// Implicit feedback in memory: which users chose which items, in three splits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/config/config.hpp"
#include "trainer/input/dictionary.hpp"

namespace gpups::trainer {

// A user chose an item. Numbers of the dictionaries.
struct Interaction {
  std::uint32_t user, item;
  bool operator==(Interaction const&) const = default;
};

// The distinct interactions of a split, in the order of users and then of items.
class Interactions {
 public:
  Interactions() = default;
  // users: the number of all users.
  Interactions(std::vector<Interaction> pairs, std::size_t users);

  std::size_t size() const { return pairs_.size(); }
  Interaction const& operator[](std::uint64_t i) const { return pairs_[i]; }
  std::vector<Interaction> const& pairs() const { return pairs_; }
  // Returns the interactions of a user.
  std::span<Interaction const> of(std::uint32_t user) const {
    return std::span(pairs_).subspan(offsets_[user], offsets_[user + 1] - offsets_[user]);
  }
  bool has(Interaction pair) const;
  // Returns the largest number of interactions that `users` consecutive users have together.
  std::uint64_t most_of(std::size_t users) const;
  std::uint64_t bytes() const {
    return pairs_.capacity() * sizeof(Interaction) + offsets_.capacity() * sizeof(std::uint64_t);
  }

 private:
  std::vector<Interaction> pairs_;
  std::vector<std::uint64_t> offsets_{0};
};

// All interactions of a run. Users and items of `train` have the lowest numbers.
struct InteractionSet {
  Dictionary users{"user"}, items{"item"};
  std::size_t known_users = 0, known_items = 0;  // in `train`
  Interactions train, valid, test;               // disjoint
  std::vector<std::string> notices;

  // REQUIRES: name is "valid" or "test".
  Interactions const& split(std::string_view name) const { return name == "valid" ? valid : test; }
  // Returns the number of training interactions of each item.
  std::vector<float> popularity() const;
  // Returns a digest of the data.
  std::uint64_t digest() const;
};

// Reads the files of a configuration: lines of a user and any number of items, or of a user, an item and other columns,
// which are skipped. A user may have several lines. If a split has no file, it gets a random share of the training
// file. Throws Error if a file cannot be read, if which of both its lines are cannot be told, or if the training file
// has no interactions.
InteractionSet read_interactions(DataConfig const& config);

}  // namespace gpups::trainer
