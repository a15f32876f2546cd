// SPDX-License-Identifier: Apache-2.0
// One share of the keys of a batch, and the results of their insertion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpups/array.hpp"
#include "kernels/index/key_shares.hpp"

namespace gpups::kernels {

struct InsertedShare {
  std::size_t size = 0;
  Array<std::uint32_t> places;  // (size): their positions in the batch, ascending
  Array<std::uint32_t> found;   // (size): their numbers; of a new key: kNewKey + the first position of an equal one
  // The addresses of the numbers of new keys in the index. Until its number is known, that of a new key is kNewKey +
  // its first position.
  std::size_t new_count = 0;
  Array<std::uint32_t*> new_numbers;
  std::size_t new_in_chunk[kSharesMax] = {};
  bool repeats_new_keys = false;
  Array<std::uint32_t> waiting;           // keys that wait, see ShareInsertion
  std::vector<std::size_t> beyond_limit;  // keys that would leave the buckets of the share

  // Prepares for `keys` keys of the next part.
  void begin(std::size_t keys) {
    size = keys;
    new_count = 0;
    beyond_limit.clear();
    if (keys < found.size()) return;
    // Room for one element that is written and not kept, and for later parts with somewhat more keys of this share.
    std::size_t const room = keys + keys / 4 + 1;
    places = Array<std::uint32_t>(Device::host(), room);
    found = Array<std::uint32_t>(Device::host(), room);
    new_numbers = Array<std::uint32_t*>(Device::host(), room);
    waiting = Array<std::uint32_t>(Device::host(), room);
  }
};

}  // namespace gpups::kernels
