// SPDX-License-Identifier: Apache-2.0
#include "kernels/index/bucket_storage.hpp"

#include <algorithm>

#include "kernels/index/index_keys.hpp"

namespace gpups::kernels {
namespace {

constexpr std::size_t kWords = sizeof(Bucket) / sizeof(std::uint64_t);
// The old and the new array together have 2.5 times the buckets of the old one. With five buckets for each new key, the
// move ends after as many new keys as a tenth of the old array's places, so the old array is at most 95 % full.
constexpr std::size_t kBucketsPerKey = 5;
constexpr std::size_t kBucketsAtOnce = std::size_t{1} << 14;

std::size_t capacity_of(std::size_t buckets) { return buckets * kBucketKeys * 17 / 20; }
std::size_t buckets_for(std::size_t keys, std::size_t least) { return std::max((keys * 4 + 14) / 15, least); }

BucketArray ref(Array<std::uint64_t> const& words) {
  return {reinterpret_cast<Bucket*>(words.data()), static_cast<std::uint32_t>(words.size() / kWords)};
}

}  // namespace

BucketStorage::BucketStorage(Device device, std::size_t keys, std::size_t least_buckets)
    : old_(device, buckets_for(keys, least_buckets) * kWords) {
  Stream stream(device, 1);
  clear_buckets(stream, {kernels::ref(old_), 0, kernels::ref(old_).size});
  stream.wait();
}

std::size_t BucketStorage::bytes_for(std::size_t keys, std::size_t least_buckets) {
  return buckets_for(keys, least_buckets) * sizeof(Bucket);
}

Buckets BucketStorage::ref() const { return {kernels::ref(old_), kernels::ref(grown_), moved_}; }

std::size_t BucketStorage::capacity() const { return capacity_of((grown_.empty() ? old_ : grown_).size() / kWords); }

void BucketStorage::begin_move(Stream& stream, std::size_t buckets) {
  growths_ += buckets > old_.size() / kWords ? 1 : 0;
  grown_ = Array<std::uint64_t>(stream.device(), buckets * kWords);
  emptied_ = moved_ = 0;
  erased_ = 0;
}

void BucketStorage::wait_move(Stream& stream, std::size_t buckets) {
  if (grown_.empty()) return;
  BucketArray const from = kernels::ref(old_), to = kernels::ref(grown_);
  auto const part = [&](std::uint32_t done, std::uint32_t size) {
    std::size_t const count = std::min<std::size_t>(buckets, size - done);
    buckets -= count;
    return done + static_cast<std::uint32_t>(count);
  };
  std::uint32_t const empty_to = part(emptied_, to.size);
  if (empty_to > emptied_) clear_buckets(stream, {to, emptied_, empty_to});
  emptied_ = empty_to;
  std::uint32_t const move_to = part(moved_, from.size);
  if (move_to > moved_) move_keys(stream, {from, to, moved_, move_to});
  moved_ = move_to;
  if (moved_ < from.size) return;
  stream.wait();
  old_ = std::move(grown_);
  grown_ = {};
  moved_ = 0;
}

void BucketStorage::wait_make_room(Stream& stream, std::size_t keys, std::size_t more) {
  constexpr std::size_t kAll = ~std::size_t{0};
  std::size_t const places = old_.size() / kWords * kBucketKeys;
  bool const full = keys + more > capacity(), worn = grown_.empty() && erased_ > places / 4;
  if (full) wait_move(stream, kAll);
  if (full || worn) {
    std::size_t const buckets = old_.size() / kWords;
    begin_move(stream, full ? std::max(buckets * 3 / 2, buckets_for(keys + more, kLeastBuckets)) : buckets);
  }
  wait_move(stream, kBucketsAtOnce + more * kBucketsPerKey);
}

}  // namespace gpups::kernels
