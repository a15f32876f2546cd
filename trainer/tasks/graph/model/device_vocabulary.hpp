// SPDX-License-Identifier: Apache-2.0
// The keys of a vocabulary, on the host and on each GPU that uses them.
#pragma once

#include <map>
#include <mutex>
#include <utility>

#include "trainer/tasks/graph/model.hpp"

namespace gpups::trainer {

// Copies the keys to a GPU at the first use there.
class DeviceVocabulary {
 public:
  // seed: of random orders.
  DeviceVocabulary(Vocabulary vocabulary, std::uint64_t seed);

  struct Keys {
    View<Key const> entities, relations;
    View<Key const> shuffled;  // the entities in random order
    View<Key const> by_part;   // see Vocabulary; the entities of a part in random order
    View<std::uint64_t const> part_offsets;
  };
  // Returns the keys on the stream's device. The first call for a GPU copies them and blocks. Any thread.
  Keys keys(Stream& stream) const;
  Vocabulary const& host() const { return host_; }

 private:
  struct Copy {
    Array<Key> entities, relations, shuffled, by_part;
    Array<std::uint64_t> part_offsets;
  };
  Vocabulary host_;
  std::vector<Key> shuffled_;
  mutable std::mutex mutex_;
  mutable std::map<int, Copy> copies_;  // by CUDA device
};

}  // namespace gpups::trainer
