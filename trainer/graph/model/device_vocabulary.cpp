// SPDX-License-Identifier: Apache-2.0
#include "trainer/graph/model/device_vocabulary.hpp"

#include "trainer/random.hpp"

namespace gpups::trainer {
namespace {

// Makes the random numbers of the shuffle differ from others with the same seed.
constexpr std::uint64_t kShuffle = 0x73687566666c65;  // "shuffle"

}  // namespace

DeviceVocabulary::DeviceVocabulary(Vocabulary vocabulary, std::uint64_t seed)
    : host_(std::move(vocabulary)), shuffled_(host_.entities) {
  RandomBits const random(seed, kShuffle);
  for (std::size_t i = shuffled_.size(); i > 1; --i) std::swap(shuffled_[i - 1], shuffled_[below(i, random(i))]);
}

DeviceVocabulary::Keys DeviceVocabulary::keys(Stream& stream) const {
  if (stream.device().is_host()) {
    return {View<Key const>(host_.entities), View<Key const>(host_.relations), View<Key const>(shuffled_),
            View<Key const>(host_.by_part), View<std::uint64_t const>(host_.part_offsets)};
  }
  std::lock_guard lock(mutex_);
  auto at = copies_.find(stream.device().index);
  if (at == copies_.end()) {
    Copy copy{to_device(stream, host_.entities), to_device(stream, host_.relations), to_device(stream, shuffled_),
              to_device(stream, host_.by_part), to_device(stream, host_.part_offsets)};
    at = copies_.emplace(stream.device().index, std::move(copy)).first;
  }
  return {at->second.entities, at->second.relations, at->second.shuffled, at->second.by_part, at->second.part_offsets};
}

}  // namespace gpups::trainer
