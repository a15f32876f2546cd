// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/round/round_state.hpp"

#include <algorithm>
#include <deque>

#include "kernels/base/check.hpp"
#include "kernels/rows/gather_elements.hpp"

namespace gpups::cache {

std::vector<Rank> RoundState::others() const {
  std::vector<Rank> all;
  for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(ranks); ++q) {
    if (Rank{q} != me) all.push_back(Rank{q});
  }
  return all;
}

ReadRows read_rows(PendingBatch const& pending, std::size_t part, Rank from, std::optional<Rank> late_home) {
  auto const& reads = pending.batch->parts[part].reads;
  ReadRows const all{.first = reads.first[number(from)], .size = reads.size_of(from)};
  if (!late_home) return all;
  auto const found = pending.late_answers.find(part);
  if (found == pending.late_answers.end()) return *late_home == from ? all : ReadRows{};
  auto const& [places, first] = found->second;
  auto const list = number(from) * (reads.first.size() - 1) + number(*late_home);
  return {.size = first[list + 1] - first[list],
          .places = places.positions.slice(first[list], first[list + 1] - first[list])};
}

bool has_list(PreparedBatch::Impl const& batch, RankLists PreparedPart::*lists, Rank rank) {
  return std::any_of(batch.parts.begin(), batch.parts.end(),
                     [=](auto const& part) { return (part.*lists).size_of(rank) > 0; });
}

bool has_rows(PendingBatch const& pending) {
  auto const is_remote = [](PreparedPart const& part) { return part.reads.size() + part.arriving.size() > 0; };
  auto const& parts = pending.batch->parts;
  return pending.routed && pending.fetches == 0 && pending.values.empty() && pending.arrived.empty() &&
         (pending.placed || std::none_of(parts.begin(), parts.end(), is_remote));
}

Array<Key> keys_at(Stream& stream, PreparedPart const& part, View<std::uint32_t const> positions) {
  Array<Key> keys(stream.device(), positions.size());
  kernels::gather_elements(stream, kernels::GatherElements<Key>{part.keys, positions, keys});
  return keys;
}

View<std::uint32_t const> take_rows(Stream& stream, View<std::uint32_t const> column, ReadRows const& rows,
                                    std::deque<Array<std::uint32_t>>& room) {
  if (rows.places.empty()) return column.slice(rows.first, rows.size);
  auto const& taken = room.emplace_back(stream.device(), rows.size);
  kernels::gather_elements(stream, kernels::GatherElements<std::uint32_t>{column, rows.places, taken});
  return taken;
}

bool has_keys(std::vector<ListKeys> const& parts) {
  return std::any_of(parts.begin(), parts.end(), [](auto const& part) { return !part.keys.empty(); });
}

bool has_rows(ReaderBatch const& batch, std::span<RowRole const> roles) {
  return std::any_of(batch.homes.begin(), batch.homes.end(), [=](auto const& home) {
    return std::any_of(roles.begin(), roles.end(), [&](RowRole role) { return has_keys(home.second.of(role)); });
  });
}

std::vector<View<Key const>> keys_of(ReaderBatch const& batch, std::span<RowRole const> roles, std::size_t part) {
  std::vector<View<Key const>> pieces;
  for (auto const& [home, list] : batch.homes) {
    for (RowRole const role : roles) {
      auto const& parts = list.of(role);
      if (!parts.empty() && !parts[part].keys.empty()) pieces.push_back(parts[part].keys);
    }
  }
  return pieces;
}

std::size_t parts_of(ReaderBatch const& batch) {
  return batch.homes.empty() ? 0 : batch.homes.begin()->second.tables.size();
}

std::vector<PartKeys> without_keys(std::vector<PartKeys> const& parts) {
  std::vector<PartKeys> empty;
  for (auto const& part : parts) empty.push_back({.table = part.table, .keys = {}});
  return empty;
}

void join_updates(ReaderBatch& batch) {
  if (!batch.updates.empty()) return;
  batch.updates.resize(parts_of(batch));
  for (std::size_t p = 0; p < batch.updates.size(); ++p) {
    batch.updates[p].table = batch.homes.begin()->second.tables[p];
    for (auto const& keys : keys_of(batch, kUpdateRoles, p)) batch.updates[p].count += keys.size();
  }
}

}  // namespace gpups::cache
