// SPDX-License-Identifier: Apache-2.0
#include "cache/batch/prepared_batch.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/index/unique_keys.hpp"
#include "kernels/pool/pool.hpp"
#include "kernels/rows/row_storage.hpp"
#include "kernels/runtime/require_memory.hpp"

namespace gpups {
namespace cache {
namespace {

void check(std::span<TableBatch const> tables, Device device, std::size_t table_count) {
  std::size_t entries = 0;
  for (TableBatch const& batch : tables) {
    entries += std::min(batch.keys.size(), kernels::kUniqueKeysMax + 1);
    GPUPS_REQUIRE(number(batch.table) < table_count,
                  "a batch uses table {} (the store has {} tables): add the table first", number(batch.table),
                  table_count);
    kernels::require_memory(batch.keys, "prepare", "keys");
    kernels::require_memory(batch.offsets, "prepare", "bag offsets");
    GPUPS_REQUIRE(
        batch.keys.empty() || batch.keys.device() == device,
        "a batch's keys are on {} and the stream is on {} (the stream's device reads the keys): copy them first",
        to_string(batch.keys.device()), to_string(device));
    GPUPS_REQUIRE(
        batch.offsets.empty() || batch.offsets.device() == device,
        "a batch's bag offsets are on {} and the stream is on {} (the stream's device reads the offsets): copy them "
        "first",
        to_string(batch.offsets.device()), to_string(device));
  }
  GPUPS_REQUIRE(entries <= kernels::kUniqueKeysMax, "a batch has {} entries (the maximum is {}): use smaller batches",
                entries, kernels::kUniqueKeysMax);
}

// Divides an array into slices that start at multiples of 16 elements.
template <class T>
class Slices {
 public:
  static std::size_t room_for(std::size_t count) { return (count + 15) / 16 * 16; }

  explicit Slices(View<T> all) : all_(all) {}
  View<T> next(std::size_t count) { return all_.slice(std::exchange(at_, at_ + room_for(count)), count); }

 private:
  View<T> all_;
  std::size_t at_ = 0;
};

// Allocates the arrays of all parts. A part has room for as many rows as it has entries.
void allocate(BatchPattern::Impl& pattern, std::span<TableBatch const> tables, Device device, int ranks) {
  std::size_t key_room = 0, word_room = 0;
  for (TableBatch const& batch : tables) {
    std::size_t const n = batch.keys.size();
    key_room += Slices<Key>::room_for(n);
    word_room += 2 * Slices<std::uint32_t>::room_for(n) + Slices<std::uint32_t>::room_for(n + 1);
  }
  pattern.keys = Array<Key>(device, key_room);
  pattern.words = Array<std::uint32_t>(device, word_room);
  Slices<Key> keys(pattern.keys);
  Slices<std::uint32_t> words(pattern.words);
  for (TableBatch const& batch : tables) {
    std::size_t const n = batch.keys.size();
    PatternPart& part = pattern.parts.emplace_back();
    part.table = batch.table;
    part.entries = n;
    part.homes.resize(static_cast<std::size_t>(ranks) + 1);
    part.keys = keys.next(n);
    part.positions = words.next(n);
    part.offsets = words.next(n + 1);
    part.order = words.next(n);
  }
}

// Finds the distinct keys of each part and the entries of each key, and truncates the arrays to the number of rows.
void wait_find_keys(Stream& stream, BatchPattern::Impl& pattern, std::span<TableBatch const> tables, int ranks) {
  std::vector<kernels::KeyPart> parts;
  for (std::size_t p = 0; p < tables.size(); ++p) {
    PatternPart& part = pattern.parts[p];
    parts.push_back({.keys = tables[p].keys,
                     .unique = part.keys,
                     .positions = part.positions,
                     .home_offsets = part.homes,
                     .offsets = part.offsets,
                     .order = part.order});
  }
  kernels::wait_unique_keys(stream, {.parts = parts, .homes = static_cast<std::uint32_t>(ranks)});
  for (PatternPart& part : pattern.parts) {
    part.rows = part.homes.back();
    part.keys = part.keys.slice(0, part.rows);
    part.offsets = part.offsets.slice(0, part.rows + 1);
  }
}

// Copies the bag offsets of pooled parts and finds the bag of each entry. Throws Error for invalid offsets, because
// kernels would read entries beyond the end.
void wait_find_bags(Stream& stream, BatchPattern::Impl& pattern, std::span<TableBatch const> tables) {
  std::vector<kernels::BagPart> bags;
  std::vector<TableBatch const*> batches;
  for (std::size_t p = 0; p < tables.size(); ++p) {
    if (tables[p].offsets.empty()) continue;
    PatternPart& part = pattern.parts[p];
    part.bags = Array<std::uint32_t>(stream.device(), tables[p].offsets.size());
    part.bag_of = Array<std::uint32_t>(stream.device(), part.entries);
    bags.push_back({.offsets = tables[p].offsets, .kept = part.bags, .bag_of = part.bag_of});
    batches.push_back(&tables[p]);
  }
  if (bags.empty()) return;
  Array<std::uint32_t> const bad_offsets(stream.device(), bags.size());
  kernels::validate_bags(stream, {.parts = bags, .bad_offsets = bad_offsets});
  auto const found = to_host(stream, bad_offsets.view());
  for (std::size_t p = 0; p < found.size(); ++p) {
    if (found[p] == kernels::kNoRow) continue;
    auto const offsets = to_host(stream, batches[p]->offsets);
    throw Error(
        fmt::format("the bag offsets of table {} are invalid: the first is {}, the last is {}, and there are {} "
                    "entries (the offsets "
                    "divide the entries into bags): start at 0, end at the number of entries, and never decrease",
                    number(batches[p]->table), offsets.front(), offsets.back(), batches[p]->keys.size()));
  }
}

}  // namespace

std::shared_ptr<BatchPattern::Impl> wait_make_pattern(Stream& stream, std::span<TableBatch const> tables,
                                                      std::size_t samples, int ranks, std::size_t table_count) {
  check(tables, stream.device(), table_count);
  auto pattern = std::make_shared<BatchPattern::Impl>();
  pattern->samples = samples;
  allocate(*pattern, tables, stream.device(), ranks);
  wait_find_bags(stream, *pattern, tables);
  wait_find_keys(stream, *pattern, tables, ranks);
  return pattern;
}

}  // namespace cache

namespace {

PreparedBatch::Impl const& batch_of(PreparedBatch const& prepared, char const* call) {
  cache::require_batch(prepared, call);
  return *prepared.impl();
}
cache::PreparedPart const& part_of(PreparedBatch const& prepared, std::size_t part, char const* call) {
  auto const& parts = batch_of(prepared, call).parts;
  cache::require_part(part, parts.size(), call);
  return parts[part];
}

}  // namespace

void cache::require_batch(PreparedBatch const& batch, char const* call) {
  GPUPS_REQUIRE(
      batch.impl() != nullptr,
      "{}() was called with an empty batch (it was default-constructed or moved from): use a batch that prepare() "
      "has returned",
      call);
}

void cache::require_part(std::size_t part, std::size_t parts, char const* call) {
  GPUPS_REQUIRE(part < parts,
                "{}() was called for part {} of a batch with {} parts (parts are numbered from 0): use a lower number",
                call, part, parts);
}

BatchPattern PreparedBatch::pattern() const { return BatchPattern(batch_of(*this, "pattern").pattern); }
Clock PreparedBatch::clock() const { return batch_of(*this, "clock").clock; }
std::size_t PreparedBatch::samples() const { return batch_of(*this, "samples").samples; }
std::size_t PreparedBatch::parts() const { return batch_of(*this, "parts").parts.size(); }
TableId PreparedBatch::table(std::size_t part) const { return part_of(*this, part, "table").table; }
std::size_t PreparedBatch::entries(std::size_t part) const { return part_of(*this, part, "entries").entries; }
std::size_t PreparedBatch::rows(std::size_t part) const { return part_of(*this, part, "rows").rows; }
View<Key const> PreparedBatch::keys(std::size_t part) const { return part_of(*this, part, "keys").keys; }
View<std::uint32_t const> PreparedBatch::positions(std::size_t part) const {
  return part_of(*this, part, "positions").positions;
}

}  // namespace gpups
