// SPDX-License-Identifier: Apache-2.0
// A vocabulary's keys on whatever device asks for them.
#pragma once

#include <map>
#include <mutex>
#include <utility>

#include "trainer/graph/model.hpp"

namespace gpups::trainer {

class DeviceVocabulary {
 public:
  // seed: of the shuffle.
  DeviceVocabulary(Vocabulary vocabulary, std::uint64_t seed);

  struct Keys {
    View<Key const> entities, relations;
    View<Key const> shuffled;  // the entities, in an order that has nothing to do with what they are
  };
  // On the stream's device; copied there by the first call, which waits. Any thread.
  Keys keys(Stream& stream) const;
  Vocabulary const& host() const { return host_; }

 private:
  struct Copy {
    Array<Key> entities, relations, shuffled;
  };
  Vocabulary host_;
  std::vector<Key> shuffled_;
  mutable std::mutex mutex_;
  mutable std::map<int, Copy> copies_;  // by CUDA device
};

}  // namespace gpups::trainer
