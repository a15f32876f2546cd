// SPDX-License-Identifier: Apache-2.0
// LeasedBatches: divides batches when they are announced.
#include <algorithm>
#include <utility>

#include "cache/protocol/leased_batches.hpp"
#include "kernels/hash.hpp"

namespace gpups::cache {

// The rows of one table in the announced batch, by home.
struct LeasedBatches::AnnouncedRows {
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  struct Row {
    Key key{};
    std::uint32_t whole_row = kNone;  // its row in the whole batch
    std::uint32_t occurrences = 0;
    bool begins_lease = false;
  };
  TableId table{};
  std::vector<std::vector<Row>> of_home{};
};

// Plans the uses of keys of one home. Rows of this home that are there get no new lease.
std::vector<ReplicaUse> LeasedBatches::plan(TableId table, View<Key const> keys, Rank home, Clock clock,
                                            std::span<std::uint32_t> occurrences) {
  std::vector<ReplicaUse> uses(keys.size(), ReplicaUse::kRefresh);
  if (home == state_.me && !state_.placement.any_moved) return uses;
  auto& of_table = leases(table);
  bool const all = synchronized_.contains(clock);
  std::size_t const leases_max = state_.table(table).pin_budget();
  if (home != state_.me) return of_table.plan(keys, occurrences, clock, leases_max, all);
  auto const owners = state_.placement.directories[number(table)].owners(keys, home, clock);
  for (bool const is_there : {false, true}) {
    std::vector<std::uint32_t> places, counts;
    std::vector<Key> some;
    for (std::uint32_t i = 0; i < keys.size(); ++i) {
      if ((owners[i] == home) != is_there) continue;
      places.push_back(i);
      some.push_back(keys[i]);
      counts.push_back(occurrences[i]);
    }
    auto const planned = of_table.plan(View<Key const>(some), counts, clock, is_there ? 0 : leases_max, all);
    for (std::size_t i = 0; i < places.size(); ++i) {
      uses[places[i]] = planned[i];
      occurrences[places[i]] = counts[i];
    }
  }
  return uses;
}

LeasedBatches::AnnouncedRows LeasedBatches::wait_plan_part(PreparedPart const& part, HostKeys const& keys, Clock clock,
                                                           DividedPart& divided, std::int64_t& unannounced) {
  auto& stream = state_.stream;
  auto const& shard = state_.table(part.table);
  std::vector<std::uint32_t> occurrences(part.rows, 0);
  if (shard.counts_occurrences()) {
    auto const offsets = to_host(stream, part.offsets);
    for (std::size_t row = 0; row < part.rows; ++row) occurrences[row] = offsets[row + 1] - offsets[row];
  }
  AnnouncedRows announced{.table = part.table, .of_home = {}};
  std::vector<std::uint32_t> leased_rows;
  std::vector<Key> leased_keys;
  for (std::uint32_t h = 0; h < static_cast<std::uint32_t>(state_.ranks); ++h) {
    Rank const home{h};
    auto const of_home = keys.of(part.keys_at(home));
    auto const counts = std::span(occurrences).subspan(part.homes[h], of_home.size());
    auto const uses = plan(part.table, of_home, home, clock, counts);
    auto& rows = announced.of_home.emplace_back();
    for (std::uint32_t i = 0; i < of_home.size(); ++i) {
      auto const row = part.homes[h] + i;
      if (uses[i] == ReplicaUse::kLeased) {
        leased_rows.push_back(row);
        leased_keys.push_back(of_home[i]);
        unannounced += home == state_.me ? 0 : 1;
      } else {
        rows.push_back({of_home[i], row, counts[i], uses[i] == ReplicaUse::kRefreshAndLease});
      }
    }
  }
  divided.leased_rows = to_device(stream, leased_rows);
  divided.leased_keys = to_device(stream, leased_keys);
  divided.leased_ids = Array<std::uint32_t>(stream.device(), leased_rows.size());
  return announced;
}

// Adds the rows whose gradients have waited long enough.
void LeasedBatches::take_due(TableId table, Clock clock, AnnouncedRows& rows, std::int64_t& unannounced) {
  for (auto const& due :
       leases(table).take_due(clock, synchronized_.contains(clock), state_.table(table).pin_budget())) {
    auto const home = kernels::home_of(due.key, static_cast<std::uint32_t>(state_.ranks));
    unannounced -= Rank{home} == state_.me ? 0 : 1;
    rows.of_home[home].push_back(
        {due.key, AnnouncedRows::kNone, due.occurrences, due.use == ReplicaUse::kRefreshAndLease});
  }
}

// Makes the pattern of the announced batch. It has no entries: its sums are not those of a push.
std::shared_ptr<BatchPattern::Impl> LeasedBatches::make_pattern(BatchPattern::Impl const& whole,
                                                                std::vector<AnnouncedRows> const& parts) {
  auto& stream = state_.stream;
  auto pattern = std::make_shared<BatchPattern::Impl>();
  pattern->store = whole.store;
  pattern->samples = whole.samples;
  std::vector<Key> keys;
  std::vector<std::uint32_t> words;
  for (auto const& of_part : parts) {
    auto& part = pattern->parts.emplace_back();
    part.table = of_part.table;
    part.homes.push_back(0);
    words.push_back(0);
    for (auto const& rows : of_part.of_home) {
      for (auto const& row : rows) {
        keys.push_back(row.key);
        words.push_back(words.back() + row.occurrences);
      }
      part.rows += rows.size();
      part.homes.push_back(static_cast<std::uint32_t>(part.rows));
    }
  }
  pattern->keys = to_device(stream, keys);
  pattern->words = to_device(stream, words);
  std::size_t key = 0, word = 0;
  for (auto& part : pattern->parts) {
    part.keys = pattern->keys.view().slice(std::exchange(key, key + part.rows), part.rows);
    part.offsets = pattern->words.view().slice(std::exchange(word, word + part.rows + 1), part.rows + 1);
  }
  return pattern;
}

BatchPtr LeasedBatches::wait_divide(BatchPtr const& whole, HostKeys const& keys, std::int64_t& unannounced) {
  auto& stream = state_.stream;
  Clock const clock = whole->clock;
  DividedBatch divided{.whole = whole, .announced = nullptr};
  std::vector<AnnouncedRows> parts;
  std::map<TableId, std::size_t> of_table;  // the first part of each
  for (auto& part : whole->parts) {
    part.ids = Array<std::uint32_t>(stream.device(), part.rows);
    of_table.try_emplace(part.table, parts.size());
    parts.push_back(wait_plan_part(part, keys, clock, divided.parts.emplace_back(), unannounced));
  }
  for (std::uint32_t t = 0; t < state_.tables.size(); ++t) {
    auto const [place, is_new] = of_table.try_emplace(TableId{t}, parts.size());
    if (is_new) {
      parts.push_back(
          {TableId{t}, std::vector<std::vector<AnnouncedRows::Row>>(static_cast<std::size_t>(state_.ranks))});
    }
    take_due(TableId{t}, clock, parts[place->second], unannounced);
    bool const is_empty = std::all_of(parts.back().of_home.begin(), parts.back().of_home.end(),
                                      [](auto const& rows) { return rows.empty(); });
    if (is_new && is_empty) parts.pop_back();
  }
  synchronized_.erase(clock);
  divided.parts.resize(parts.size());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    std::vector<std::uint32_t> whole_rows, announced_rows, begun;
    std::uint32_t announced = 0;
    for (auto const& rows : parts[p].of_home) {
      for (auto const& row : rows) {
        if (row.whole_row != AnnouncedRows::kNone) {
          whole_rows.push_back(row.whole_row);
          announced_rows.push_back(announced);
        }
        if (row.begins_lease) begun.push_back(announced);
        ++announced;
      }
    }
    divided.parts[p].whole_rows = to_device(stream, whole_rows);
    divided.parts[p].announced_rows = to_device(stream, announced_rows);
    divided.parts[p].begun = to_device(stream, begun);
  }
  divided.announced = std::make_shared<PreparedBatch::Impl>(make_pattern(*whole->pattern, parts), clock);
  return batches_.emplace(clock, std::move(divided)).first->second.announced;
}

}  // namespace gpups::cache
