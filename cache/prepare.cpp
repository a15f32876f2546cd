// SPDX-License-Identifier: Apache-2.0
#include "cache/prepare.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "kernels/bag_sources.hpp"
#include "kernels/check.hpp"
#include "kernels/check_bags.hpp"
#include "kernels/row_storage.hpp"
#include "kernels/unique_keys.hpp"

namespace gpups {
namespace cache {
namespace {

Array<std::uint32_t> copy_of(Stream& stream, View<std::uint32_t const> from) {
  Array<std::uint32_t> to(stream.device(), from.size());
  copy<std::uint32_t>(stream, to, from);
  return to;
}

void check(std::span<TableBatch const> tables, Device device, std::size_t table_count) {
  std::size_t entries = 0;
  for (TableBatch const& batch : tables) {
    entries += batch.keys.size();
    GPUPS_REQUIRE(number(batch.table) < table_count, "a batch names table {} (the store has {}): add the table first",
                  number(batch.table), table_count);
    GPUPS_REQUIRE(batch.keys.empty() || batch.keys.device() == device,
                  "a batch's keys are on {} and the stream is on {} (they are read there): copy them first",
                  to_string(batch.keys.device()), to_string(device));
    GPUPS_REQUIRE(batch.offsets.empty() || batch.offsets.device() == device,
                  "a batch's bag offsets are on {} and the stream is on {} (they are read there): copy them first",
                  to_string(batch.offsets.device()), to_string(device));
  }
  GPUPS_REQUIRE(entries <= kernels::kUniqueKeysMax, "a batch has {} entries (the most is {}): use smaller batches",
                entries, kernels::kUniqueKeysMax);
}

// Offsets that do not cut the entries into bags would be read past their end.
void wait_check_bags(Stream& stream, std::span<TableBatch const> tables) {
  if (std::all_of(tables.begin(), tables.end(), [](TableBatch const& batch) { return batch.offsets.empty(); })) return;
  Array<std::uint32_t> const faults(stream.device(), tables.size());
  memory::fill_bytes(stream, faults.data(), 0xFF, faults.bytes());
  for (std::size_t p = 0; p < tables.size(); ++p) {
    if (tables[p].offsets.empty()) continue;
    kernels::check_bags(stream, {tables[p].offsets, tables[p].keys.size(), faults.data() + p});
  }
  auto const found = to_host(stream, faults.view());
  for (std::size_t p = 0; p < tables.size(); ++p) {
    if (found[p] == kernels::kNoRow) continue;
    auto const offsets = to_host(stream, tables[p].offsets);
    throw Error(fmt::format(
        "the bag offsets of table {} go from {} to {} for {} entries, or fall in between (they cut the entries into "
        "bags): start at 0, end at the number of entries, never fall",
        number(tables[p].table), offsets.front(), offsets.back(), tables[p].keys.size()));
  }
}

// Memory for the arrays of all parts, with room for as many rows as entries.
void allocate(BatchPattern::Impl& pattern, std::span<TableBatch const> tables, Device device, int ranks) {
  std::size_t entries = 0;
  for (TableBatch const& batch : tables) entries += batch.keys.size();
  pattern.keys = Array<Key>(device, entries);
  pattern.words = Array<std::uint32_t>(device, 3 * entries + tables.size());
  std::size_t first = 0, at = 0;
  auto const words = [&](std::size_t count) {
    return pattern.words.view().slice(std::exchange(at, at + count), count);
  };
  for (TableBatch const& batch : tables) {
    std::size_t const n = batch.keys.size();
    PatternPart& part = pattern.parts.emplace_back();
    part.table = batch.table;
    part.entries = n;
    part.owners.resize(static_cast<std::size_t>(ranks) + 1);
    part.keys = pattern.keys.view().slice(std::exchange(first, first + n), n);
    part.positions = words(n);
    part.offsets = words(n + 1);
    part.order = words(n);
  }
}

// Finds the parts' distinct keys and the entries of each, and gives the arrays their sizes.
void wait_find_keys(Stream& stream, BatchPattern::Impl& pattern, std::span<TableBatch const> tables, int ranks) {
  std::vector<kernels::KeyPart> parts;
  for (std::size_t p = 0; p < tables.size(); ++p) {
    PatternPart& part = pattern.parts[p];
    parts.push_back({.keys = tables[p].keys,
                     .unique = part.keys,
                     .positions = part.positions,
                     .home_offsets = part.owners,
                     .offsets = part.offsets,
                     .order = part.order});
  }
  kernels::wait_unique_keys(stream, {.parts = parts, .homes = static_cast<std::uint32_t>(ranks)});
  for (PatternPart& part : pattern.parts) {
    part.rows = part.owners.back();
    part.keys = part.keys.slice(0, part.rows);
    part.offsets = part.offsets.slice(0, part.rows + 1);
  }
}

void find_bags(Stream& stream, PatternPart& part, TableBatch const& batch) {
  if (batch.offsets.empty()) return;
  part.bags = copy_of(stream, batch.offsets);
  part.bag_of = Array<std::uint32_t>(stream.device(), part.entries);
  kernels::bag_sources(stream, {.offsets = part.bags, .sources = part.bag_of});
}

}  // namespace

std::shared_ptr<BatchPattern::Impl const> wait_make_pattern(Stream& stream, std::span<TableBatch const> tables,
                                                            std::size_t samples, int ranks, std::size_t table_count) {
  check(tables, stream.device(), table_count);
  wait_check_bags(stream, tables);
  auto pattern = std::make_shared<BatchPattern::Impl>();
  pattern->samples = samples;
  allocate(*pattern, tables, stream.device(), ranks);
  for (std::size_t p = 0; p < tables.size(); ++p) find_bags(stream, pattern->parts[p], tables[p]);
  wait_find_keys(stream, *pattern, tables, ranks);
  stream.wait();
  return pattern;
}

}  // namespace cache

BatchPattern Prepared::pattern() const { return BatchPattern(impl_->pattern); }
Clock Prepared::clock() const { return impl_->clock; }
std::size_t Prepared::samples() const { return impl_->samples; }
std::size_t Prepared::parts() const { return impl_->parts.size(); }
TableId Prepared::table(std::size_t part) const { return impl_->parts[part].table; }
std::size_t Prepared::entries(std::size_t part) const { return impl_->parts[part].entries; }
std::size_t Prepared::rows(std::size_t part) const { return impl_->parts[part].rows; }
View<Key const> Prepared::keys(std::size_t part) const { return impl_->parts[part].keys; }
View<std::uint32_t const> Prepared::positions(std::size_t part) const { return impl_->parts[part].positions; }

}  // namespace gpups
