// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/frequent_values.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/base/check.hpp"
#include "kernels/base/hash.hpp"

namespace gpups::trainer {
namespace {

constexpr char kFrequentValuesBlob[] = "clicks/frequent_values";

// Returns the slot of a key, or the free slot where it would be inserted. REQUIRES: a slot is free; the key is not 0.
std::size_t place_of(std::vector<std::uint64_t> const& slots, std::uint64_t key) {
  std::size_t const mask = slots.size() - 1;
  std::size_t place = kernels::hash_of(Key{key}) & mask;
  while (slots[place] != 0 && slots[place] != key) place = (place + 1) & mask;
  return place;
}

}  // namespace

FrequentValues::FrequentValues(std::span<std::uint64_t const> keys)
    : slots_(std::bit_ceil(2 * keys.size() + 2)), size_(keys.size()) {
  for (std::uint64_t key : keys) {
    if (key == 0) {
      has_zero_ = true;
    } else {
      slots_[place_of(slots_, key)] = key;
    }
  }
}

bool FrequentValues::has(Key key) const {
  if (number(key) == 0) return has_zero_;
  return !slots_.empty() && slots_[place_of(slots_, number(key))] != 0;
}

std::vector<std::uint64_t> FrequentValues::keys() const {
  std::vector<std::uint64_t> keys;
  if (has_zero_) keys.push_back(0);
  std::copy_if(slots_.begin(), slots_.end(), std::back_inserter(keys), [](std::uint64_t key) { return key != 0; });
  std::sort(keys.begin(), keys.end());
  return keys;
}

KeyCounts::KeyCounts() : slots_(1024), counts_(1024) {}

std::uint32_t KeyCounts::add(Key key) {
  auto const count = [](std::uint8_t& n) { return n = static_cast<std::uint8_t>(std::min(n + 1, 255)); };
  if (number(key) == 0) return count(zeros_);
  std::size_t const place = place_of(slots_, number(key));
  if (slots_[place] == 0) {
    slots_[place] = number(key);
    ++size_;
  }
  std::uint32_t const added = count(counts_[place]);
  if (2 * size_ > slots_.size()) grow();
  return added;
}

void KeyCounts::grow() {
  std::vector<std::uint64_t> slots(2 * slots_.size());
  std::vector<std::uint8_t> counts(slots.size());
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i] == 0) continue;
    std::size_t const place = place_of(slots, slots_[i]);
    slots[place] = slots_[i];
    counts[place] = counts_[i];
  }
  slots_.swap(slots);
  counts_.swap(counts);
}

FrequentValues KeyCounts::at_least(std::uint32_t least) const {
  std::vector<std::uint64_t> keys;
  if (zeros_ >= least && zeros_ > 0) keys.push_back(0);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i] != 0 && counts_[i] >= least) keys.push_back(slots_[i]);
  }
  return FrequentValues(keys);
}

Blob to_blob(FrequentValues const& values) {
  auto const keys = values.keys();
  return {kFrequentValuesBlob, std::string(reinterpret_cast<char const*>(keys.data()), keys.size() * sizeof(keys[0]))};
}

FrequentValues frequent_values(std::span<Blob const> blobs) {
  auto const blob =
      std::find_if(blobs.begin(), blobs.end(), [](Blob const& b) { return b.name == kFrequentValuesBlob; });
  GPUPS_REQUIRE(
      blob != blobs.end() && blob->bytes.size() % sizeof(std::uint64_t) == 0,
      "{} of the checkpoint is missing or cut (it lists the values that have rows): choose another checkpoint",
      kFrequentValuesBlob);
  std::vector<std::uint64_t> keys(blob->bytes.size() / sizeof(std::uint64_t));
  if (!keys.empty()) std::memcpy(keys.data(), blob->bytes.data(), blob->bytes.size());
  return FrequentValues(keys);
}

}  // namespace gpups::trainer
