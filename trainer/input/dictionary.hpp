// SPDX-License-Identifier: Apache-2.0
// Numbers the names of one kind of thing from 0, in the order in which they are added, and gives each the key of its
// row.
//
// A key is a 64-bit hash of the name, salted with the kind. Takes about 40 bytes per name, and its text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpups/types.hpp"

namespace gpups::trainer {

// Returns the XXH3 hash of the name, seeded with the hash of the kind. It is the same on every machine and in every
// run.
Key key_of_name(std::string_view kind, std::string_view name);

// The names of entities, for example. One thread at a time; const functions from any thread.
class Dictionary {
 public:
  using KeyFunction = Key (*)(std::string_view kind, std::string_view name);

  explicit Dictionary(std::string kind, KeyFunction key_of = key_of_name);

  // Returns the number of a name, and adds the name if it is new. Throws Error if another name has the same key.
  std::uint32_t add(std::string_view name);
  // Returns the number of a name, or nothing if it was not added.
  std::optional<std::uint32_t> find(std::string_view name) const;

  std::size_t size() const { return keys_.size(); }
  // Returns the bytes of memory.
  std::uint64_t bytes() const {
    return keys_.capacity() * sizeof(Key) + text_.capacity() + ends_.capacity() * sizeof(std::uint64_t) +
           slots_.capacity() * sizeof(std::uint32_t);
  }
  // Returns the name with this number. REQUIRES: number < size().
  std::string_view name(std::uint32_t number) const;
  std::vector<Key> const& keys() const { return keys_; }  // by number
  std::string const& kind() const { return kind_; }

 private:
  // Returns the index of the key's slot, or of the free slot for it.
  std::size_t place_of(Key key) const;
  void grow();

  std::string kind_;
  KeyFunction key_of_;
  std::vector<Key> keys_;
  std::string text_;                  // all names, one after the other
  std::vector<std::uint64_t> ends_;   // by number: end of the name in text_
  std::vector<std::uint32_t> slots_;  // open addressing: number + 1; 0: free
};

// A name that a user asks about.
struct QueriedName {
  std::string name;
  std::string position{};  // "users.txt:7", or empty if it is an argument
};

// Returns the numbers of those names that training has seen, in order. Adds a notice of the others. Throws Error if
// there are no such names; the error suggests a similar name. trained: by number. why: what is wrong with others of the
// dictionary, for the error.
std::vector<std::uint32_t> find_trained(Dictionary const& names, std::vector<bool> const& trained,
                                        std::vector<QueriedName> const& queries, std::vector<std::string>& notices,
                                        std::string_view why);
// The same, if training has seen the first `trained` names.
std::vector<std::uint32_t> find_trained(Dictionary const& names, std::size_t trained,
                                        std::vector<QueriedName> const& queries, std::vector<std::string>& notices);

// Throws Error with the first of the names that a file cannot hold, and their number. is_unfit: whether it cannot hold
// a name. which, instead: what these names have, and what to do, for the message.
void require_fit_names(Dictionary const& names, bool (*is_unfit)(std::string_view name), std::string_view which,
                       std::string_view instead);

// Returns a line for each name: its key, a tab and the name. keys: by number. Throws Error for a name with a tab or an
// end of a line.
std::string names_and_keys(Dictionary const& names, std::vector<Key> const& keys);

}  // namespace gpups::trainer
