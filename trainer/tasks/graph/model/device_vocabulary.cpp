// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/graph/model/device_vocabulary.hpp"

#include <span>

#include "trainer/base/random.hpp"

namespace gpups::trainer {
namespace {

// Makes the random numbers of the shuffle differ from others with the same seed.
constexpr std::uint64_t kShuffle = 0x73687566666c65;  // "shuffle"

// Brings keys into a random order.
void shuffle(std::span<Key> keys, std::uint64_t seed) {
  RandomBits const random(seed, kShuffle);
  for (std::size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[below(i, random(i))]);
}

}  // namespace

DeviceVocabulary::DeviceVocabulary(Vocabulary vocabulary, std::uint64_t seed)
    : host_(std::move(vocabulary)), shuffled_(host_.entities) {
  shuffle(shuffled_, seed);
  for (std::size_t part = 1; part < host_.part_offsets.size(); ++part) {
    std::uint64_t const begin = host_.part_offsets[part - 1];
    shuffle(std::span(host_.by_part).subspan(begin, host_.part_offsets[part] - begin), seed);
  }
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
