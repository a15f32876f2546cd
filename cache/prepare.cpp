// SPDX-License-Identifier: Apache-2.0
#include "cache/prepare.hpp"

#include <algorithm>

#include "kernels/bag_sources.hpp"
#include "kernels/check.hpp"
#include "kernels/transpose.hpp"
#include "kernels/unique_keys.hpp"

namespace gpups {
namespace cache {
namespace {

Array<std::uint32_t> copy_of(Stream& stream, View<std::uint32_t const> from) {
  Array<std::uint32_t> to(stream.device(), from.size());
  copy<std::uint32_t>(stream, to, from);
  return to;
}

void check(TableBatch const& batch, Device device, std::size_t table_count) {
  std::size_t const entries = batch.keys.size();
  GPUPS_REQUIRE(number(batch.table) < table_count, "a batch names table {} (the store has {}): add the table first",
                number(batch.table), table_count);
  GPUPS_REQUIRE(entries <= kernels::kUniqueKeysMax,
                "a batch has {} entries in table {} (the most is {}): use smaller batches", entries,
                number(batch.table), kernels::kUniqueKeysMax);
  GPUPS_REQUIRE(entries == 0 || batch.keys.device() == device,
                "a batch's keys are on {} and the stream is on {} (they are read there): copy them first",
                to_string(batch.keys.device()), to_string(device));
}

// Offsets that do not cut the entries into bags would be read past their end.
void wait_check_bags(Stream& stream, TableBatch const& batch) {
  if (batch.offsets.empty()) return;
  GPUPS_REQUIRE(batch.offsets.device() == stream.device(),
                "a batch's bag offsets are on {} and the stream is on {} (they are read there): copy them first",
                to_string(batch.offsets.device()), to_string(stream.device()));
  auto const offsets = to_host(stream, batch.offsets);
  GPUPS_REQUIRE(
      offsets.front() == 0 && offsets.back() == batch.keys.size() && std::is_sorted(offsets.begin(), offsets.end()),
      "the bag offsets of table {} go from {} to {} for {} entries, or fall in between (they cut the entries into "
      "bags): start at 0, end at the number of entries, never fall",
      number(batch.table), offsets.front(), offsets.back(), batch.keys.size());
}

PreparedPart make_part(Stream& stream, TableBatch const& batch, int ranks) {
  Device const device = stream.device();
  PreparedPart part;
  part.table = batch.table;
  part.entries = batch.keys.size();
  part.owners.resize(static_cast<std::size_t>(ranks) + 1);
  part.positions = Array<std::uint32_t>(device, part.entries);

  Array<Key> distinct(device, part.entries);
  kernels::wait_unique_keys(stream, {.keys = batch.keys,
                                     .homes = static_cast<std::uint32_t>(ranks),
                                     .unique = distinct,
                                     .positions = part.positions,
                                     .home_offsets = part.owners});
  part.rows = part.owners.back();
  part.keys = Array<Key>(device, part.rows);
  copy<Key>(stream, part.keys, distinct.view().slice(0, part.rows));

  part.offsets = Array<std::uint32_t>(device, part.rows + 1);
  part.order = Array<std::uint32_t>(device, part.entries);
  kernels::wait_transpose(stream, {.positions = part.positions, .offsets = part.offsets, .order = part.order});
  if (!batch.offsets.empty()) {
    part.bags = copy_of(stream, batch.offsets);
    part.bag_of = Array<std::uint32_t>(device, part.entries);
    kernels::bag_sources(stream, {.offsets = part.bags, .sources = part.bag_of});
  }
  stream.wait();
  return part;
}

}  // namespace

std::shared_ptr<Prepared::Impl> wait_prepare(Stream& stream, Clock clock, std::span<TableBatch const> tables,
                                             std::size_t samples, int ranks, std::size_t table_count) {
  auto prepared = std::make_shared<Prepared::Impl>();
  prepared->clock = clock;
  prepared->samples = samples;
  for (auto const& batch : tables) {
    check(batch, stream.device(), table_count);
    wait_check_bags(stream, batch);
    prepared->parts.push_back(make_part(stream, batch, ranks));
  }
  return prepared;
}

}  // namespace cache

Clock Prepared::clock() const { return impl_->clock; }
std::size_t Prepared::samples() const { return impl_->samples; }
std::size_t Prepared::parts() const { return impl_->parts.size(); }
TableId Prepared::table(std::size_t part) const { return impl_->parts[part].table; }
std::size_t Prepared::entries(std::size_t part) const { return impl_->parts[part].entries; }
std::size_t Prepared::rows(std::size_t part) const { return impl_->parts[part].rows; }
View<Key const> Prepared::keys(std::size_t part) const { return impl_->parts[part].keys; }
View<std::uint32_t const> Prepared::positions(std::size_t part) const { return impl_->parts[part].positions; }

}  // namespace gpups
