// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/leased_batches.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "cache/wire/no_bad_row.hpp"
#include "kernels/gather_elements.hpp"
#include "kernels/hash.hpp"
#include "kernels/replica_uses.hpp"
#include "kernels/sum_gradients.hpp"
#include "kernels/upload.hpp"

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

ReplicaLeases& LeasedBatches::leases(TableId table) { return leases_.try_emplace(table, state_.staleness).first->second; }

WaitingSums& LeasedBatches::sums(TableId table) {
  return sums_.try_emplace(table, state_.stream.device(), state_.table(table).options()).first->second;
}

// -- a batch is announced --

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
                                                           DividedPart& divided) {
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
        state_.remote_home_keys += home == state_.me ? 0 : 1;
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
void LeasedBatches::take_due(TableId table, Clock clock, AnnouncedRows& rows) {
  for (auto const& due : leases(table).take_due(clock, synchronized_.contains(clock), state_.table(table).pin_budget())) {
    auto const home = kernels::home_of(due.key, static_cast<std::uint32_t>(state_.ranks));
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

BatchPtr LeasedBatches::wait_divide(BatchPtr const& whole, HostKeys const& keys) {
  auto& stream = state_.stream;
  Clock const clock = whole->clock;
  DividedBatch divided{.whole = whole, .announced = nullptr};
  std::vector<AnnouncedRows> parts;
  std::map<TableId, std::size_t> of_table;  // the first part of each
  for (auto& part : whole->parts) {
    part.ids = Array<std::uint32_t>(stream.device(), part.rows);
    of_table.try_emplace(part.table, parts.size());
    parts.push_back(wait_plan_part(part, keys, clock, divided.parts.emplace_back()));
  }
  for (std::uint32_t t = 0; t < state_.tables.size(); ++t) {
    auto const [place, is_new] = of_table.try_emplace(TableId{t}, parts.size());
    if (is_new) {
      parts.push_back({TableId{t}, std::vector<std::vector<AnnouncedRows::Row>>(static_cast<std::size_t>(state_.ranks))});
    }
    take_due(TableId{t}, clock, parts[place->second]);
    bool const is_empty =
        std::all_of(parts.back().of_home.begin(), parts.back().of_home.end(), [](auto const& rows) { return rows.empty(); });
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

// -- its rows are here --

PreparedBatch::Impl& LeasedBatches::join_rows(Clock clock) {
  auto& stream = state_.stream;
  auto& divided = batches_.at(clock);
  auto& whole = *divided.whole;
  std::vector<TableShard::ShardKeys> leased;
  std::vector<kernels::GatherElements<std::uint32_t>> gathers;
  std::vector<kernels::ScatterElements> scatters;
  std::vector<Array<std::uint32_t>> memory;
  std::vector<TableShard::Pin> pins;
  for (std::size_t p = 0; p < divided.parts.size(); ++p) {
    auto const& part = divided.parts[p];
    auto const& announced = divided.announced->parts[p];
    auto& shard = state_.table(announced.table);
    auto const& pinned = memory.emplace_back(stream.device(), part.begun.size());
    gathers.push_back({announced.ids, part.begun, pinned});
    pins.push_back({&shard, pinned});
    if (p >= whole.parts.size()) continue;
    auto const& ids = memory.emplace_back(stream.device(), part.whole_rows.size());
    gathers.push_back({announced.ids, part.announced_rows, ids});
    scatters.push_back({.from = ids, .positions = part.whole_rows, .to = whole.parts[p].ids});
    leased.push_back({&shard, part.leased_keys, part.leased_ids});
    scatters.push_back({.from = part.leased_ids, .positions = part.leased_rows, .to = whole.parts[p].ids});
  }
  kernels::gather_elements(stream, gathers);
  TableShard::pin_replicas(stream, pins, clock + state_.staleness);
  TableShard::find(stream, leased);
  kernels::scatter_elements(stream, scatters);
  return whole;
}

// -- its step --

// Divides the leased rows into those that this rank owns in the step, and replicas.
void LeasedBatches::wait_find_owned(DividedBatch& divided) {
  auto& stream = state_.stream;
  kernels::HostReads reads(stream);
  struct LeasedRows {
    Array<std::uint32_t> words_there;
    std::vector<std::uint32_t> words, rows, ids;
    std::vector<Key> keys;
  };
  std::deque<LeasedRows> all;
  for (std::size_t p = 0; p < divided.whole->parts.size(); ++p) {
    auto& part = divided.parts[p];
    auto& leased = all.emplace_back();
    leased.words_there = Array<std::uint32_t>(stream.device(), part.leased_ids.size());
    state_.table(divided.whole->parts[p].table).read_uses(stream, part.leased_ids, leased.words_there);
    reads.add<std::uint32_t>(leased.words_there.view(), leased.words);
    reads.add<std::uint32_t>(part.leased_rows.view(), leased.rows);
    reads.add<std::uint32_t>(part.leased_ids.view(), leased.ids);
    reads.add<Key>(part.leased_keys.view(), leased.keys);
  }
  reads.wait();
  for (std::size_t p = 0; p < all.size(); ++p) {
    std::vector<std::uint32_t> owned_rows, owned_ids, replica_rows;
    std::vector<Key> replica_keys;
    divided.parts[p].owned_keys.clear();
    for (std::size_t i = 0; i < all[p].words.size(); ++i) {
      if (all[p].words[i] == kernels::kOwned) {
        owned_rows.push_back(all[p].rows[i]);
        owned_ids.push_back(all[p].ids[i]);
        divided.parts[p].owned_keys.push_back(all[p].keys[i]);
      } else {
        replica_rows.push_back(all[p].rows[i]);
        replica_keys.push_back(all[p].keys[i]);
      }
    }
    auto& part = divided.parts[p];
    part.owned_rows = to_device(stream, owned_rows);
    part.owned_ids = to_device(stream, owned_ids);
    part.owned_counts = to_device(stream, std::vector<std::int64_t>(owned_ids.size(), 0));  // refreshes count them
    part.replica_rows = to_device(stream, replica_rows);
    part.replica_keys = to_device(stream, replica_keys);
  }
}

void LeasedBatches::append_owned(Clock clock, TableId table, std::vector<RowSums>& lists) {
  auto const found = batches_.find(clock);
  if (found == batches_.end()) return;
  auto const& [whole, announced, parts, taken] = found->second;
  for (std::size_t p = 0; p < whole->parts.size(); ++p) {
    auto& part = whole->parts[p];
    if (part.table != table || parts[p].owned_ids.empty()) continue;
    lists.push_back({.ids = parts[p].owned_ids,
                     .sums = part.sums,
                     .counts = parts[p].owned_counts,
                     .positions = parts[p].owned_rows});
  }
}

BatchPtr LeasedBatches::wait_join_sums(PreparedBatch::Impl const& whole, std::string& error) {
  auto& stream = state_.stream;
  auto& divided = batches_.at(whole.clock);
  divided.taken.clear();
  wait_find_owned(divided);
  for (std::size_t p = 0; p < divided.parts.size(); ++p) {
    auto const& part = divided.parts[p];
    auto& announced = divided.announced->parts[p];
    auto const& options = state_.table(announced.table).options();
    announced.sums = Matrix<std::int64_t>(stream.device(), announced.rows, options.dim);
    memory::fill_bytes(stream, announced.sums.view().data(), 0, announced.sums.view().flat().bytes());
    auto const bad_row = no_bad_row(stream);
    if (p < whole.parts.size()) {
      kernels::merge_sums(stream, {.into = announced.sums,
                                   .slots = part.announced_rows,
                                   .sums = whole.parts[p].sums,
                                   .bad_row = bad_row,
                                   .positions = part.whole_rows});
    }
    divided.taken.push_back(sums(announced.table).wait_read(stream, announced.keys, announced.sums, bad_row));
    auto const row = to_host(stream, bad_row.view())[0];
    if (row == kernels::kNoRow || !error.empty()) continue;
    error = fmt::format(
        "the gradients of key {} in table '{}' are too large on rank {} at step {}, with those of earlier steps (the "
        "step was rejected on all ranks): check the data and lower the learning rate",
        number(to_host(stream, announced.keys.slice(row, 1))[0]), options.name, number(state_.me), number(whole.clock));
  }
  return divided.announced;
}

void LeasedBatches::wait_end_step(Clock clock, bool rejected) {
  auto& stream = state_.stream;
  auto const node = batches_.extract(clock);
  if (node.empty()) return;
  auto& divided = node.mapped();
  for (std::size_t p = 0; p < divided.taken.size(); ++p) {
    auto const table = divided.announced->parts[p].table;
    if (rejected) {
      leases(table).retry(divided.taken[p]);
    } else if (!divided.taken[p].empty()) {
      sums(table).wait_drop(stream, to_device(stream, divided.taken[p]));
    }
  }
  for (std::size_t p = 0; p < divided.whole->parts.size(); ++p) {
    auto& part = divided.whole->parts[p];
    auto const& of_part = divided.parts[p];
    leases(part.table).applied(View<Key const>(of_part.owned_keys), clock);
    if (!rejected && !of_part.replica_rows.empty()) {
      sums(part.table).wait_add(stream, clock, of_part.replica_keys, part.sums, of_part.replica_rows);
    }
    part.end_step();
  }
}

// -- between steps --

void LeasedBatches::clear() {
  for (auto& [table, of_table] : leases_) of_table.clear();
}

std::vector<Key> LeasedBatches::wait_keys(TableId table) const {
  auto const found = sums_.find(table);
  return found == sums_.end() ? std::vector<Key>{} : found->second.wait_keys(state_.stream);
}

void LeasedBatches::wait_drop(TableId table, View<Key const> keys) {
  auto const found = sums_.find(table);
  if (found == sums_.end()) return;
  found->second.wait_drop(state_.stream, keys);
  leases(table).drop(to_host(state_.stream, keys));
}

void LeasedBatches::wait_save(ResidualFile& file) const {
  for (auto const& [table, of_table] : sums_) {
    auto chunk = of_table.wait_save(state_.stream);
    chunk.table = table;
    chunk.peer = state_.me;  // after a restore, the owners of the rows add them
    if (!chunk.keys.empty()) file.chunks.push_back(std::move(chunk));
  }
}

ReplicaLeases::Counts LeasedBatches::counts() const {
  ReplicaLeases::Counts all;
  for (auto const& [table, of_table] : leases_) {
    auto const& counts = of_table.counts();
    all = {all.reads + counts.reads, all.age + counts.age, std::max(all.age_max, counts.age_max)};
  }
  return all;
}

}  // namespace gpups::cache
