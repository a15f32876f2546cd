// SPDX-License-Identifier: Apache-2.0
// LeasedBatches: divides batches when they are announced.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "cache/protocol/leased_batches.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/hash.hpp"

namespace gpups::cache {

// The rows of one table in the announced batch, by home.
struct LeasedBatches::AnnouncedRows {
  struct Row {
    Key key{};
    std::uint32_t occurrences = 0;
    bool begins_lease = false;
  };
  // A row: the place-th of its home.
  struct Place {
    std::uint32_t home = 0, place = 0;
  };
  TableId table{};
  std::vector<std::vector<Row>> of_home{};
  bool has_parts = false;                      // the whole batch has several parts of the table
  std::unordered_map<Key, Place> places = {};  // if it has

  Place add(std::uint32_t home, Row const& row) {
    Place const place{home, static_cast<std::uint32_t>(of_home[home].size())};
    of_home[home].push_back(row);
    if (has_parts) places[row.key] = place;
    return place;
  }
  // Returns the row numbers of places.
  std::vector<std::uint32_t> rows_at(std::vector<Place> const& at) const {
    std::vector<std::uint32_t> first{0}, rows;
    for (auto const& rows_of_home : of_home)
      first.push_back(first.back() + static_cast<std::uint32_t>(rows_of_home.size()));
    for (auto const& [home, place] : at) {
      GPUPS_ASSERT(place < of_home[home].size());
      rows.push_back(first[home] + place);
    }
    return rows;
  }
};

// The rows of a part of the whole batch that are announced, with their places in the announced batch.
struct LeasedBatches::AnnouncedPart {
  std::vector<std::uint32_t> whole_rows;
  std::vector<AnnouncedRows::Place> places;
};

// Plans the uses of keys of one home. Rows that their home owns, if it is this rank, get no new lease.
std::vector<ReplicaUse> LeasedBatches::plan(TableId table, View<Key const> keys, Rank home, Clock clock,
                                            std::span<std::uint32_t> occurrences) {
  std::vector<ReplicaUse> uses(keys.size(), ReplicaUse::kRefresh);
  if (home == state_.me && !state_.placement.any_moved) return uses;
  auto& of_table = leases(table);
  bool const all = clock <= synchronized_until_;
  std::size_t const leases_max = state_.table(table).pin_budget(step_rows_[table]);
  if (home != state_.me) return of_table.plan(keys, occurrences, clock, leases_max, all);
  auto const owners = state_.placement.at(table).wait_owners(state_.stream, keys, clock);
  for (bool const at_home : {false, true}) {
    std::vector<std::uint32_t> places, counts;
    std::vector<Key> some;
    for (std::uint32_t i = 0; i < keys.size(); ++i) {
      if ((owners[i] == home) != at_home) continue;
      places.push_back(i);
      some.push_back(keys[i]);
      counts.push_back(occurrences[i]);
    }
    auto const planned = of_table.plan(View<Key const>(some), counts, clock, at_home ? 0 : leases_max, all);
    for (std::size_t i = 0; i < places.size(); ++i) {
      uses[places[i]] = planned[i];
      occurrences[places[i]] = counts[i];
    }
  }
  return uses;
}

LeasedBatches::AnnouncedPart LeasedBatches::wait_plan_part(PreparedPart const& part, HostKeys const& keys, Clock clock,
                                                           AnnouncedRows& rows, DividedPart& divided) {
  auto& stream = state_.stream;
  std::vector<std::uint32_t> entries(part.rows, 0);
  if (state_.table(part.table).counts_occurrences()) {
    auto const offsets = to_host(stream, part.offsets);
    for (std::size_t row = 0; row < part.rows; ++row) entries[row] = offsets[row + 1] - offsets[row];
  }
  AnnouncedPart announced;
  std::vector<std::uint32_t> leased_rows;
  std::vector<Key> leased_keys;
  for (std::uint32_t home = 0; home < static_cast<std::uint32_t>(state_.ranks); ++home) {
    auto const of_home = keys.of(part.keys_at(Rank{home}));
    std::vector<Key> planned;
    std::vector<std::uint32_t> planned_rows, occurrences;
    for (std::uint32_t i = 0; i < of_home.size(); ++i) {
      auto const row = part.homes[home] + i;
      auto const other = rows.places.find(of_home[i]);
      if (other == rows.places.end()) {
        planned.push_back(of_home[i]);
        planned_rows.push_back(row);
        occurrences.push_back(entries[row]);
      } else {  // another part of the batch announces it
        rows.of_home[home][other->second.place].occurrences += entries[row];
        announced.whole_rows.push_back(row);
        announced.places.push_back(other->second);
      }
    }
    auto const uses = plan(part.table, View<Key const>(planned), Rank{home}, clock, occurrences);
    for (std::size_t i = 0; i < planned.size(); ++i) {
      if (uses[i] == ReplicaUse::kLeased) {
        leased_rows.push_back(planned_rows[i]);
        leased_keys.push_back(planned[i]);
        divided.leased_entries.push_back(entries[planned_rows[i]]);
        divided.unannounced += Rank{home} == state_.me ? 0 : 1;
      } else {
        announced.whole_rows.push_back(planned_rows[i]);
        announced.places.push_back(
            rows.add(home, {planned[i], occurrences[i], uses[i] == ReplicaUse::kRefreshAndLease}));
      }
    }
  }
  // Each row of the part is announced, by this part or by another one, or read as it is.
  GPUPS_ASSERT(announced.whole_rows.size() + leased_rows.size() == part.rows);
  GPUPS_ASSERT(announced.places.size() == announced.whole_rows.size() &&
               divided.leased_entries.size() == leased_rows.size());
  divided.leased_rows = to_device(stream, leased_rows);
  divided.leased_keys = to_device(stream, leased_keys);
  divided.leased_ids = Array<std::uint32_t>(stream.device(), leased_rows.size());
  return announced;
}

// Adds the rows whose gradients have waited long enough. Returns how many have another home.
std::int64_t LeasedBatches::take_due(Clock clock, AnnouncedRows& rows) {
  std::int64_t of_others = 0;
  auto const leases_max = state_.table(rows.table).pin_budget(step_rows_[rows.table]);
  for (auto const& due : leases(rows.table).take_due(clock, synchronized_.contains(clock), leases_max)) {
    auto const home = kernels::home_of(due.key, static_cast<std::uint32_t>(state_.ranks));
    of_others += Rank{home} == state_.me ? 0 : 1;
    rows.add(home, {due.key, due.occurrences, due.use == ReplicaUse::kRefreshAndLease});
  }
  return of_others;
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
  GPUPS_ASSERT(key == keys.size() && word == words.size());
  return pattern;
}

// Returns the number of rows of a table that have other homes, over all parts of a batch.
std::size_t LeasedBatches::rows_of_others(PreparedBatch::Impl const& batch, TableId table) const {
  std::size_t rows = 0;
  for (auto const& part : batch.parts) {
    if (part.table == table) rows += part.rows - part.rows_at(state_.me);
  }
  return rows;
}

BatchPtr LeasedBatches::wait_divide(BatchPtr const& whole, HostKeys const& keys, std::int64_t& unannounced) {
  auto& stream = state_.stream;
  Clock const clock = whole->clock;
  GPUPS_ASSERT(!batches_.contains(clock));
  DividedBatch divided{.whole = whole, .announced = nullptr};
  if (synchronized_.contains(clock)) synchronized_until_ = std::max(synchronized_until_, clock);
  std::vector<AnnouncedRows> tables;
  for (std::uint32_t t = 0; t < state_.tables.size(); ++t) {
    auto const parts = std::count_if(whole->parts.begin(), whole->parts.end(),
                                     [=](auto const& part) { return part.table == TableId{t}; });
    auto& step_rows = step_rows_[TableId{t}];
    step_rows = std::max(step_rows, rows_of_others(*whole, TableId{t}));
    tables.push_back({.table = TableId{t}, .has_parts = parts > 1});
    tables.back().of_home.resize(static_cast<std::size_t>(state_.ranks));
  }
  std::vector<AnnouncedPart> announced;
  for (auto& part : whole->parts) {
    part.ids = Array<std::uint32_t>(stream.device(), part.rows);
    auto& of_part = divided.parts.emplace_back();
    announced.push_back(wait_plan_part(part, keys, clock, tables[number(part.table)], of_part));
    unannounced += of_part.unannounced;
  }
  for (auto& rows : tables) unannounced -= take_due(clock, rows);
  synchronized_.erase(clock);
  for (std::size_t p = 0; p < announced.size(); ++p) {
    auto const& rows = tables[number(whole->parts[p].table)];
    divided.parts[p].whole_rows = to_device(stream, announced[p].whole_rows);
    divided.parts[p].announced_rows = to_device(stream, rows.rows_at(announced[p].places));
  }
  std::erase_if(tables, [&](AnnouncedRows const& rows) {
    auto const is_empty = [](auto const& of_home) { return of_home.empty(); };
    return std::all_of(rows.of_home.begin(), rows.of_home.end(), is_empty);
  });
  for (auto const& rows : tables) divided.begun.push_back(begun_rows(rows));
  divided.announced = std::make_shared<PreparedBatch::Impl>(make_pattern(*whole->pattern, tables), clock);
  return batches_.emplace(clock, std::move(divided)).first->second.announced;
}

// Returns the rows with which leases begin.
Array<std::uint32_t> LeasedBatches::begun_rows(AnnouncedRows const& rows) const {
  std::vector<std::uint32_t> begun;
  std::uint32_t row = 0;
  for (auto const& of_home : rows.of_home) {
    for (auto const& announced : of_home) {
      if (announced.begins_lease) begun.push_back(row);
      ++row;
    }
  }
  return to_device(state_.stream, begun);
}

}  // namespace gpups::cache
