// SPDX-License-Identifier: Apache-2.0
#include "kernels/index/key_index.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "gpups/error.hpp"
#include "kernels/base/check.hpp"
#include "kernels/index/index_keys.hpp"
#include "kernels/index/sort_keys.hpp"

namespace gpups::kernels {
namespace {

// The number of keys of a batch that are inserted before the index checks again whether it must grow. It decides when
// the index grows, so it does not depend on the number of threads.
std::size_t keys_at_once(Device device) { return std::size_t{1} << (device.is_host() ? 17 : 20); }

// A batch has few new keys if at most one key in kKeysPerFewNew is new.
constexpr std::size_t kKeysPerFewNew = 8;

// Growth::kByMoving is for many indices with few keys each, which begin with fewer buckets.
std::size_t least_buckets(Growth growth) { return growth == Growth::kByMoving ? 4 : BucketStorage::kLeastBuckets; }

std::vector<KeysOfIndex> indices_of(std::span<KeyIndex::Search const> searches) {
  std::vector<KeysOfIndex> indices;
  for (auto const& search : searches) {
    GPUPS_ASSERT(search.ids.size() >= search.keys.size());
    indices.push_back({search.index->buckets(), search.keys, search.ids});
  }
  return indices;
}

}  // namespace

KeyIndex::KeyIndex(Device device, std::size_t expected_keys, Growth growth)
    : buckets_(device, expected_keys, least_buckets(growth)),
      keys_(device, 1, NewRows::kUndefined, growth),
      free_(device, 0) {
  Stream stream(device, 1);
  keys_.reserve(stream, expected_keys);
  if (!device.is_host()) return;
  // The operating system provides memory when it is first written. It is written here, so that this does not delay
  // training.
  for (std::size_t row = 0; row < keys_.rows_reserved(); row += kChunkRows) {
    std::size_t const rows = std::min(kChunkRows, keys_.rows_reserved() - row);
    memory::fill_bytes(stream, keys_.ref().row(static_cast<std::uint32_t>(row)), 0, rows * sizeof(Key));
  }
}

std::size_t KeyIndex::bytes_for(std::size_t keys, Growth growth) {
  return BucketStorage::bytes_for(keys, least_buckets(growth)) + RowStorage<std::uint64_t>::bytes_for(keys, 1, growth);
}

void KeyIndex::find(Stream& stream, View<Key const> keys, View<std::uint32_t> ids) const {
  Search const search{this, keys, ids};
  find(stream, {&search, 1});
}

Buckets KeyIndex::buckets() const { return buckets_.ref(); }

void KeyIndex::find(Stream& stream, std::span<Search const> searches) { find_keys(stream, {indices_of(searches)}); }

void KeyIndex::find_missing(Stream& stream, std::span<Search const> searches, View<std::uint32_t> counts) {
  auto indices = indices_of(searches);
  for (std::size_t s = 0; s < searches.size() && stream.device().is_host(); ++s) {
    if (searches[s].index->many_new_) indices[s].keys = {};
  }
  memory::fill_bytes(stream, counts.data(), 0, searches.size() * sizeof(std::uint32_t));
  find_keys(stream, {indices, counts});
  for (std::size_t s = 0; s < searches.size(); ++s) {
    auto const& [index, keys, ids] = searches[s];
    if (indices[s].keys.size() == keys.size()) continue;
    memory::fill_bytes(stream, ids.data(), 0xFF, keys.size() * sizeof(std::uint32_t));  // kNoRow
    counts[s] = static_cast<std::uint32_t>(keys.size());
  }
}

std::vector<std::uint32_t> KeyIndex::wait_find_missing(Stream& stream, std::span<Search const> searches) {
  Array<std::uint32_t> const counts(stream.device(), searches.size());
  find_missing(stream, searches, counts);
  return to_host(stream, counts.view());
}

Array<std::uint32_t> KeyIndex::wait_find_or_insert(Stream& stream, View<Key const> keys, View<std::uint32_t> ids) {
  return wait_insert(stream, keys, ids, std::nullopt);
}

Array<std::uint32_t> KeyIndex::wait_insert(Stream& stream, View<Key const> keys, View<std::uint32_t> ids,
                                           std::optional<std::size_t> missing) {
  Array<std::uint32_t> new_ids(stream.device(), missing.value_or(keys.size()));
  std::size_t const step = keys_at_once(stream.device());
  std::size_t inserted = 0;
  for (std::size_t first = 0; first < keys.size(); first += step) {
    std::size_t const count = std::min(step, keys.size() - first);
    Search const part{this, keys.slice(first, count), ids.slice(first, count)};
    bool const known = missing.has_value() && count == keys.size();
    std::size_t const of_part = known ? *missing : wait_find_missing(stream, {&part, 1})[0];
    if (of_part > 0) inserted += wait_insert_part(stream, part, of_part, new_ids.view().slice(inserted, of_part));
  }
  many_new_ = inserted * kKeysPerFewNew > keys.size();
  if (inserted == new_ids.size()) return new_ids;
  Array<std::uint32_t> result(stream.device(), inserted);
  copy<std::uint32_t>(stream, result, new_ids.view().slice(0, inserted));
  stream.wait();
  return result;
}

std::size_t KeyIndex::wait_insert_part(Stream& stream, Search const& part, std::size_t missing,
                                       View<std::uint32_t> new_ids) {
  if (size() + missing > capacity()) {  // growth must not depend on whether keys were searched
    find(stream, part.keys, part.ids);
    auto const found = to_host(stream, View<std::uint32_t const>(part.ids).slice(0, part.keys.size()));
    missing = static_cast<std::size_t>(std::count(found.begin(), found.end(), kNoRow));
    if (missing == 0) return 0;
  }
  auto const free = wait_make_room(stream, missing);
  std::size_t count = 0;
  wait_insert_keys(stream, {.index = {buckets_.ref(), part.keys, part.ids},
                            .free = free,
                            .next_id = static_cast<std::uint32_t>(ids_end_),
                            .new_ids = new_ids,
                            .key_of_id = keys_.ref(),
                            .count = &count});
  count_new(count, free.size());
  return count;
}

View<std::uint32_t const> KeyIndex::wait_make_room(Stream& stream, std::size_t missing) {
  GPUPS_REQUIRE(size() + missing < kNewKey, "a table would get {} rows (row numbers have 31 bits): use more ranks",
                size() + missing);
  buckets_.wait_make_room(stream, size(), missing);
  std::size_t const reusable = std::min(missing, free_count_);
  keys_.reserve(stream, ids_end_ + missing - reusable);
  return free().slice(free_count_ - reusable, reusable);
}

void KeyIndex::count_new(std::size_t count, std::size_t free) {
  std::size_t const reused = std::min(count, free);
  free_count_ -= reused;
  ids_end_ += count - reused;
}

std::vector<Array<std::uint32_t>> KeyIndex::wait_insert(Stream& stream, std::span<Insertion const> insertions) {
  std::vector<Array<std::uint32_t>> new_ids(insertions.size());
  std::vector<std::size_t> together, counts(insertions.size(), 0);
  std::vector<View<std::uint32_t const>> free;
  for (std::size_t k = 0; k < insertions.size(); ++k) {
    auto const& [index, keys, ids, missing, table, distinct] = insertions[k];
    auto const alone = keys.size() > keys_at_once(stream.device()) || index->size() + missing > index->capacity();
    try {
      if (missing == 0) {
        index->wait_continue_growth(stream);
      } else if (alone) {
        new_ids[k] = index->wait_insert(stream, keys, ids, missing);
      } else {
        new_ids[k] = Array<std::uint32_t>(stream.device(), missing);
        free.push_back(index->wait_make_room(stream, missing));
        together.push_back(k);
      }
    } catch (Error const& error) {
      if (table.empty()) throw;
      throw Error(fmt::format("new rows of table '{}' cannot be added: {}", table, error.what()));
    }
  }
  std::vector<InsertKeys> inserts;
  for (std::size_t t = 0; t < together.size(); ++t) {
    auto const& [index, keys, ids, missing, table, distinct] = insertions[together[t]];
    inserts.push_back({.index = {index->buckets_.ref(), keys, ids},
                       .free = free[t],
                       .next_id = static_cast<std::uint32_t>(index->ids_end_),
                       .new_ids = new_ids[together[t]],
                       .key_of_id = index->keys_.ref(),
                       .count = &counts[together[t]],
                       .distinct = distinct});
  }
  wait_insert_keys(stream, inserts);
  for (std::size_t t = 0; t < together.size(); ++t) {
    std::size_t const k = together[t], count = counts[k];
    insertions[k].index->count_new(count, inserts[t].free.size());
    insertions[k].index->many_new_ = count * kKeysPerFewNew > insertions[k].keys.size();
    new_ids[k].truncate(count);
  }
  return new_ids;
}

void KeyIndex::wait_continue_growth(Stream& stream) {
  if (buckets_.is_moving()) buckets_.wait_make_room(stream, size(), 0);
}

void KeyIndex::wait_erase(Stream& stream, View<Key const> keys) {
  Array<std::uint32_t> const found(stream.device(), keys.size());
  find(stream, keys, found);
  wait_erase_ids(stream, found);
}

void KeyIndex::wait_erase_ids(Stream& stream, View<std::uint32_t const> ids) {
  Erasure const erasure{this, ids};
  wait_erase_ids(stream, {&erasure, 1});
}

void KeyIndex::wait_erase_ids(Stream& stream, std::span<Erasure const> erasures) {
  std::size_t total = 0;
  for (auto const& erasure : erasures) total += erasure.ids.size();
  if (total == 0) return;
  Array<Key> const erased(stream.device(), total), sorted(stream.device(), total);
  Array<std::uint32_t> const positions(stream.device(), total), counts(stream.device(), erasures.size());
  std::vector<Array<std::uint32_t>> merged;
  std::vector<EraseKeys> erases;
  std::vector<SortedKeys> sorts;
  std::vector<MergeFree> merges;
  std::size_t first = 0;
  bool all_used = true;
  for (auto const& [index, ids, used] : erasures) {
    auto const of_index = [&, n = ids.size()](auto const& all) { return all.view().slice(first, n); };
    auto& column = merged.emplace_back(stream.device(), index->free_count_ + ids.size());
    erases.push_back({index->buckets_.ref(), ids, index->keys_.const_ref(), of_index(erased)});
    sorts.push_back({of_index(erased), of_index(sorted), of_index(positions)});
    merges.push_back({index->free(), of_index(sorted), column, counts.data() + merges.size()});
    first += ids.size();
    all_used = all_used && used;
  }
  erase_keys(stream, erases);
  sort_keys(stream, sorts);
  merge_free(stream, merges);
  std::vector<std::uint32_t> read;
  if (!all_used) read = to_host(stream, counts.view());
  for (std::size_t e = 0; e < erasures.size(); ++e) {
    auto const& [index, ids, used] = erasures[e];
    if (ids.empty()) continue;
    std::size_t const count = all_used ? ids.size() : read[e];
    GPUPS_ASSERT(!stream.device().is_host() || counts[e] == count);
    index->free_ = std::move(merged[e]);
    index->free_count_ += count;
    index->buckets_.count_erased(count);
  }
}

Array<std::uint32_t> KeyIndex::list_ids(Stream& stream) const {
  Array<std::uint32_t> ids(stream.device(), size());
  list_used(stream, {.free = free(), .end = static_cast<std::uint32_t>(ids_end_), .used = ids});
  return ids;
}

}  // namespace gpups::kernels
