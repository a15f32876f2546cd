// SPDX-License-Identifier: Apache-2.0
#include "kernels/key_index.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "kernels/check.hpp"
#include "kernels/index_keys.hpp"

namespace gpups::kernels {
namespace {

constexpr std::size_t kWords = sizeof(Bucket) / sizeof(std::uint64_t);

std::size_t capacity_of(std::size_t buckets) { return buckets * kBucketKeys * 3 / 4; }

std::size_t buckets_for(std::size_t keys) {
  std::size_t buckets = std::bit_ceil(std::max<std::size_t>(keys / kBucketKeys, 16));
  while (capacity_of(buckets) < keys) buckets *= 2;
  return buckets;
}

Buckets ref(Array<std::uint64_t> const& words) {
  return {reinterpret_cast<Bucket*>(words.data()), words.size() / kWords - 1};
}

Array<std::uint64_t> empty_buckets(Stream& stream, std::size_t buckets) {
  Array<std::uint64_t> words(stream.device(), buckets * kWords);
  memory::fill_bytes(stream, words.data(), 0, words.bytes());
  return words;
}

}  // namespace

KeyIndex::KeyIndex(Device device, std::size_t expected_keys) : keys_(device, 1) {
  Stream stream(device, 1);
  buckets_ = empty_buckets(stream, buckets_for(expected_keys));
  stream.wait();
}

std::size_t KeyIndex::bytes_for(std::size_t keys) {
  std::size_t const chunks = (keys + kChunkRows - 1) / kChunkRows;
  return buckets_for(keys) * sizeof(Bucket) + chunks * kChunkRows * sizeof(std::uint64_t);
}

std::size_t KeyIndex::capacity() const { return capacity_of(buckets_.size() / kWords); }

void KeyIndex::find(Stream& stream, View<Key const> keys, View<std::uint32_t> ids) const {
  GPUPS_ASSERT(!buckets_.empty() && ids.size() >= keys.size());
  if (!keys.empty()) find_keys(stream, {ref(buckets_), keys, ids});
}

Buckets KeyIndex::buckets() const { return ref(buckets_); }

std::vector<std::uint32_t> KeyIndex::take_ids(std::size_t count) {
  std::size_t const reused = std::min(count, free_.size());
  std::vector<std::uint32_t> ids(count);
  std::copy_n(free_.rbegin(), reused, ids.begin());
  std::iota(ids.begin() + static_cast<std::ptrdiff_t>(reused), ids.end(), static_cast<std::uint32_t>(ids_end_));
  free_.resize(free_.size() - reused);
  ids_end_ += count - reused;
  return ids;
}

Array<std::uint32_t> KeyIndex::wait_find_or_insert(Stream& stream, View<Key const> distinct_keys,
                                                   View<std::uint32_t> ids) {
  if (distinct_keys.empty()) return {};
  find(stream, distinct_keys, ids);
  Array<std::uint32_t> absent(stream.device(), distinct_keys.size());
  std::size_t count = 0;
  wait_list_absent(stream, {ids.slice(0, distinct_keys.size()), absent, &count});
  if (count == 0) return {};

  GPUPS_REQUIRE(size() + count < kNoRow >> 1, "a table would get {} rows (row numbers have 31 bits): use more ranks",
                size() + count);
  if (size() + count > capacity()) wait_move(stream, buckets_for(size() + count), {});
  auto new_ids = to_device(stream, take_ids(count));
  keys_.reserve(stream, ids_end_);
  insert_keys(stream, {ref(buckets_), distinct_keys, absent.view().slice(0, count), new_ids, ids, keys_.ref()});
  stream.wait();
  return new_ids;
}

void KeyIndex::wait_move(Stream& stream, std::size_t buckets, Rows<std::uint32_t const> keep) {
  std::size_t const before = buckets_.size() / kWords;
  auto moved = empty_buckets(stream, buckets);
  move_keys(stream, {ref(buckets_), ref(moved), keep});
  stream.wait();
  buckets_ = std::move(moved);
  growths_ += std::bit_width(buckets / before) - 1;
}

void KeyIndex::wait_forget(Stream& stream, Rows<std::uint32_t const> keep, View<std::uint32_t const> free) {
  free_ = to_host(stream, free);
  wait_move(stream, buckets_.size() / kWords, keep);
}

}  // namespace gpups::kernels
