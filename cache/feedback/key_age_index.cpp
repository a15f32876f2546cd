// SPDX-License-Identifier: Apache-2.0
#include "cache/feedback/key_age_index.hpp"

#include <algorithm>
#include <vector>

#include "kernels/rows/gather_elements.hpp"

namespace gpups::cache {

Array<std::uint32_t> KeyAgeIndex::wait_find_or_insert(Stream& stream, View<Key const> keys, View<std::uint32_t> slots) {
  auto given = index_.wait_find_or_insert(stream, keys, slots);
  marks_.reserve(stream, index_.ids_end());
  return given;
}

Array<std::uint32_t> KeyAgeIndex::wait_list_aged(Stream& stream, kernels::ResidualMark mark, Clock step,
                                                 std::uint32_t age) const {
  Array<std::uint32_t> const among(stream.device(), slots_end());
  std::size_t const count = kernels::wait_list_aged(
      stream, {.marks = marks(), .mark = mark, .end = slots_end(), .now = stamp_of(step), .age = age, .slots = among});
  Array<std::uint32_t> slots(stream.device(), count);
  copy<std::uint32_t>(stream, slots, among.view().slice(0, count));
  stream.wait();
  return slots;
}

std::uint32_t KeyAgeIndex::wait_eviction_age(Stream& stream, Clock step, std::size_t most) const {
  if (size() <= most) return 0;
  auto const slots = index_.list_ids(stream);
  Array<std::uint32_t> const words(stream.device(), slots.size() * kernels::kResidualMarks);
  kernels::gather_stored(stream, kernels::GatherStored<std::uint32_t>{marks(), slots, words});
  std::vector<std::uint32_t> ages;
  auto const on_host = to_host(stream, words.view());
  for (std::size_t i = kernels::kLastUse; i < on_host.size(); i += kernels::kResidualMarks) {
    ages.push_back(stamp_of(step) - on_host[i]);
  }
  // Keeps an eighth less than `most`, so that not every step must evict keys. Larger ages are sorted to the end.
  std::size_t const keep = most - most / 8;
  std::nth_element(ages.begin(), ages.begin() + static_cast<std::ptrdiff_t>(keep), ages.end());
  return std::max(ages[keep], 1U);
}

void KeyAgeIndex::wait_erase(Stream& stream, View<std::uint32_t const> slots) {
  kernels::mark_residual(stream, {.marks = marks_.ref(), .slots = slots, .oldest = {}, .last_use = 0});
  index_.wait_erase_ids(stream, slots);
}

Array<Key> KeyAgeIndex::wait_keys(Stream& stream, View<std::uint32_t const> slots) const {
  Array<Key> keys(stream.device(), slots.size());
  View<std::uint64_t> const words(reinterpret_cast<std::uint64_t*>(keys.data()), slots.size(), stream.device());
  kernels::gather_stored(stream, kernels::GatherStored<std::uint64_t>{index_.keys(), slots, words});
  stream.wait();
  return keys;
}

}  // namespace gpups::cache
