// SPDX-License-Identifier: Apache-2.0
#include "trainer/graph/model/device_vocabulary.hpp"

namespace gpups::trainer {

DeviceVocabulary::Keys DeviceVocabulary::keys(Stream& stream) const {
  if (stream.device().is_host()) return {View<Key const>(host_.entities), View<Key const>(host_.relations)};
  std::lock_guard lock(mutex_);
  auto at = copies_.find(stream.device().index);
  if (at == copies_.end()) {
    Copy copy{to_device(stream, host_.entities), to_device(stream, host_.relations)};
    at = copies_.emplace(stream.device().index, std::move(copy)).first;
  }
  return {at->second.entities, at->second.relations};
}

}  // namespace gpups::trainer
