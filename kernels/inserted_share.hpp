// SPDX-License-Identifier: Apache-2.0
// A share of a batch's keys, and what the thread that put them in knows of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpups/array.hpp"
#include "kernels/key_shares.hpp"

namespace gpups::kernels {

struct InsertedShare {
  std::size_t size = 0;
  Array<std::uint32_t> places;  // (size) of the batch, ascending
  Array<std::uint32_t> found;   // (size) their numbers; of a new key: kNewKey + the first place of an equal one
  // Where the numbers of new keys belong. Until they have one there is kNewKey + their first place.
  std::size_t new_count = 0;
  Array<std::uint32_t*> new_numbers;
  std::size_t new_in_chunk[kSharesMax] = {};
  bool repeats_new_keys = false;
  Array<std::uint32_t> waiting;           // which keys are not done with their first bucket
  std::vector<std::size_t> beyond_limit;  // which keys are neither found nor in yet

  void begin(std::size_t keys) {
    size = keys;
    new_count = 0;
    beyond_limit.clear();
    if (keys < found.size()) return;
    // Room for what is written and not kept, and for a part that has some more keys of this share.
    std::size_t const room = keys + keys / 4 + 1;
    places = Array<std::uint32_t>(Device::host(), room);
    found = Array<std::uint32_t>(Device::host(), room);
    new_numbers = Array<std::uint32_t*>(Device::host(), room);
    waiting = Array<std::uint32_t>(Device::host(), room);
  }
};

}  // namespace gpups::kernels
