// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/hot_rows.hpp"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "kernels/runtime/host_reads.hpp"

namespace gpups::cache {

std::vector<RankedRow> wait_hottest_rows(Stream& stream, UsedRows const& used, std::size_t most) {
  kernels::HostReads reads(stream);
  std::vector<Key> keys;
  std::vector<std::uint32_t> first, count;
  std::vector<kernels::RowUser> users;
  reads.add<Key>(used.keys.view(), keys);
  reads.add<std::uint32_t>(used.first_user.view(), first);
  reads.add<std::uint32_t>(used.user_count.view(), count);
  reads.add<kernels::RowUser>(used.users.view(), users);
  reads.wait();

  struct Place {
    std::size_t uses;
    std::uint32_t table, row;  // keys are ascending in the rows of a table
  };
  std::vector<Place> places;
  for (std::uint32_t t = 0; t < used.tables.size(); ++t) {
    auto const& table = used.tables[t];
    for (std::uint32_t row = table.first; row < table.first + table.size; ++row) {
      std::size_t uses = 0;
      for (std::uint32_t u = 0; u < count[row]; ++u) {
        uses += static_cast<std::size_t>(std::popcount(users[first[row] + u].steps));
      }
      places.push_back({uses, t, row});
    }
  }
  auto const end = places.begin() + static_cast<std::ptrdiff_t>(std::min(most, places.size()));
  std::partial_sort(places.begin(), end, places.end(), [](Place const& a, Place const& b) {
    return std::tuple(b.uses, a.table, a.row) < std::tuple(a.uses, b.table, b.row);
  });
  std::vector<RankedRow> rows;
  for (auto place = places.begin(); place != end; ++place) {
    auto const from = users.begin() + first[place->row];
    rows.push_back({TableId{place->table}, keys[place->row], place->uses, {from, from + count[place->row]}});
  }
  return rows;
}

void HotStep::begin(Clock step, std::vector<AnnouncedBatch> batches, std::size_t ahead) {
  if (batches.empty()) return;
  if (ahead >= std::exchange(ahead_, ahead)) begun_.clear();
  begun_.emplace(step, std::move(batches));
}

std::vector<RankedRow> HotStep::wait_hottest_rows(Stream& stream, std::size_t tables, AnnouncedUses const& later,
                                                  std::size_t most) const {
  if (begun_.empty()) return {};
  Clock const hot = begun_.begin()->first;
  AnnouncedUses uses(later.window());
  auto const add = [&](Clock step, std::vector<AnnouncedBatch> const& batches) {
    for (auto const& batch : batches) uses.add(step, {.reader = batch.reader, .parts = batch.parts});
  };
  for (auto const& [step, batches] : begun_) add(step, batches);
  for (Clock step = hot; step < hot + later.window(); step = step + 1) {
    if (auto const* const of_step = later.at(step)) add(step, of_step->batches);
  }
  kernels::HostReads keys(stream), users(stream);
  uses.list_keys(stream, tables, hot, keys);
  keys.wait();
  auto const used = uses.list_rows_with_users(stream, hot, users);
  users.wait();
  return cache::wait_hottest_rows(stream, used, most);
}

}  // namespace gpups::cache
