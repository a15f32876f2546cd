// SPDX-License-Identifier: Apache-2.0
#include "kernels/key_index.hpp"

#include <algorithm>

#include "kernels/check.hpp"
#include "kernels/index_keys.hpp"

namespace gpups::kernels {
namespace {

// Keys of a batch that come in before it is asked again whether the index must grow. This decides when it does, so it
// is the same for any number of threads.
std::size_t keys_at_once(Device device) { return std::size_t{1} << (device.is_host() ? 17 : 20); }

}  // namespace

KeyIndex::KeyIndex(Device device, std::size_t expected_keys) : buckets_(device, expected_keys), keys_(device, 1) {
  Stream stream(device, 1);
  keys_.reserve(stream, expected_keys);
  if (!device.is_host()) return;
  // The operating system gives memory when it is first written: not while training waits for it.
  for (std::size_t row = 0; row < keys_.rows_reserved(); row += kChunkRows) {
    memory::fill_bytes(stream, keys_.ref().row(static_cast<std::uint32_t>(row)), 0, kChunkRows * sizeof(Key));
  }
}

std::size_t KeyIndex::bytes_for(std::size_t keys) {
  return BucketStorage::bytes_for(keys) + RowStorage<std::uint64_t>::bytes_for(keys, 1);
}

void KeyIndex::find(Stream& stream, View<Key const> keys, View<std::uint32_t> ids) const {
  Search const search{this, keys, ids};
  find(stream, {&search, 1});
}

Buckets KeyIndex::buckets() const { return buckets_.ref(); }

void KeyIndex::find(Stream& stream, std::span<Search const> searches) {
  std::vector<KeysOfIndex> indices;
  for (auto const& search : searches) {
    GPUPS_ASSERT(search.ids.size() >= search.keys.size());
    if (!search.keys.empty()) indices.push_back({search.index->buckets_.ref(), search.keys, search.ids});
  }
  if (!indices.empty()) find_keys(stream, {indices});
}

Array<std::uint32_t> KeyIndex::wait_find_or_insert(Stream& stream, View<Key const> keys, View<std::uint32_t> ids) {
  GPUPS_ASSERT(ids.size() >= keys.size());
  Array<std::uint32_t> const new_ids(stream.device(), keys.size());
  std::size_t const step = keys_at_once(stream.device());
  std::size_t inserted = 0;
  for (std::size_t first = 0; first < keys.size(); first += step) {
    std::size_t const count = std::min(step, keys.size() - first);
    wait_insert(stream, keys.slice(first, count), ids.slice(first, count), new_ids, inserted);
  }
  Array<std::uint32_t> result(stream.device(), inserted);
  copy<std::uint32_t>(stream, result, new_ids.view().slice(0, inserted));
  stream.wait();
  return result;
}

void KeyIndex::wait_insert(Stream& stream, View<Key const> keys, View<std::uint32_t> ids, View<std::uint32_t> new_ids,
                           std::size_t& inserted) {
  std::size_t const n = keys.size();
  GPUPS_REQUIRE(size() + n < kNewKey, "a table would get {} rows (row numbers have 31 bits): use more ranks",
                size() + n);
  std::size_t most = n;  // keys that may be new
  if (size() + n > capacity()) {
    find(stream, keys, ids);
    auto const found = to_host(stream, View<std::uint32_t const>(ids).slice(0, n));
    most = static_cast<std::size_t>(std::count(found.begin(), found.end(), kNoRow));
    if (most == 0) return;
  }
  buckets_.wait_make_room(stream, size(), most);
  std::size_t const reusable = std::min(most, free_.size());
  auto const free =
      to_device(stream, std::vector(free_.rbegin(), free_.rbegin() + static_cast<std::ptrdiff_t>(reusable)));
  keys_.reserve(stream, ids_end_ + most - reusable);
  std::size_t count = 0;
  wait_insert_keys(stream, {.index = {buckets_.ref(), keys, ids},
                            .free = free,
                            .next_id = static_cast<std::uint32_t>(ids_end_),
                            .new_ids = new_ids.slice(inserted, n),
                            .key_of_id = keys_.ref(),
                            .count = &count});
  std::size_t const reused = std::min(count, reusable);
  free_.resize(free_.size() - reused);
  ids_end_ += count - reused;
  inserted += count;
}

void KeyIndex::wait_erase(Stream& stream, View<Key const> keys) {
  Array<std::uint32_t> const found(stream.device(), keys.size());
  find(stream, keys, found);
  auto ids = to_host(stream, found.view());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (!ids.empty() && ids.back() == kNoRow) ids.pop_back();
  wait_erase_ids(stream, to_device(stream, ids));
}

void KeyIndex::wait_erase_ids(Stream& stream, View<std::uint32_t const> ids) {
  if (ids.empty()) return;
  Array<std::uint32_t> const was(stream.device(), ids.size());
  erase_keys(stream, {buckets_.ref(), ids, keys_.const_ref(), was});
  auto erased = to_host(stream, was.view());
  std::erase(erased, kNoRow);
  std::sort(erased.begin(), erased.end());
  auto const before = static_cast<std::ptrdiff_t>(free_.size());
  free_.insert(free_.end(), erased.begin(), erased.end());
  std::inplace_merge(free_.begin(), free_.begin() + before, free_.end());
  buckets_.count_erased(erased.size());
}

Array<std::uint32_t> KeyIndex::wait_ids(Stream& stream) const {
  std::vector<std::uint32_t> ids;
  ids.reserve(size());
  auto free = free_.begin();
  for (std::uint32_t id = 0; id < ids_end_; ++id) {
    free != free_.end() && *free == id ? void(++free) : ids.push_back(id);
  }
  return to_device(stream, ids);
}

}  // namespace gpups::kernels
