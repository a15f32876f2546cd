// SPDX-License-Identifier: Apache-2.0
// Names of one kind of thing, numbered from 0 in order of arrival, each with the key of its row.
//
// A key is a 64-bit hash of the name, salted with the kind. Costs about 40 bytes and the text for each name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpups/types.hpp"

namespace gpups::trainer {

// XXH3 of the name, seeded with XXH3 of the kind: the same on every machine and in every run.
Key key_of_name(std::string_view kind, std::string_view name);

class Dictionary {
 public:
  using KeyFunction = Key (*)(std::string_view kind, std::string_view name);

  explicit Dictionary(std::string kind, KeyFunction key_of = key_of_name);

  // The name's number, new if need be. Throws Error where another name has the same key.
  std::uint32_t add(std::string_view name);
  std::optional<std::uint32_t> find(std::string_view name) const;

  std::size_t size() const { return keys_.size(); }
  // Of memory.
  std::uint64_t bytes() const {
    return keys_.capacity() * sizeof(Key) + text_.capacity() + ends_.capacity() * sizeof(std::uint64_t) +
           slots_.capacity() * sizeof(std::uint32_t);
  }
  // REQUIRES: number < size().
  std::string_view name(std::uint32_t number) const;
  std::vector<Key> const& keys() const { return keys_; }  // number -> key
  std::string const& kind() const { return kind_; }

 private:
  // The place of the key in slots_, or the free one where it would be.
  std::size_t place_of(Key key) const;
  void grow();

  std::string kind_;
  KeyFunction key_of_;
  std::vector<Key> keys_;
  std::string text_;                  // all names, one after the other
  std::vector<std::uint64_t> ends_;   // number -> end of its name in text_
  std::vector<std::uint32_t> slots_;  // open addressing: number + 1; 0 is free
};

// Numbers of a dictionary's names: entities and relations are numbered from 0.
struct Triple {
  std::uint32_t subject, relation, object;
  bool operator==(Triple const&) const = default;
};

}  // namespace gpups::trainer
