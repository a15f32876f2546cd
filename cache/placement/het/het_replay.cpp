// SPDX-License-Identifier: Apache-2.0
#include "cache/placement/het/het_replay.hpp"

#include <algorithm>
#include <utility>

#include "kernels/base/hash.hpp"

namespace gpups::cache {
namespace {

constexpr double kKeyBytes = 8;
constexpr double kVersionBytes = 8;  // and those of a number of updates

}  // namespace

HetReplay::HetReplay(HetOptions options) : options_(std::move(options)) {
  auto const ranks = static_cast<std::size_t>(options_.ranks);
  for (auto const& table : options_.tables) {
    auto& state = tables_.emplace_back();
    for (std::size_t rank = 0; rank < ranks; ++rank) state.caches.emplace_back(options_.eviction, table.lines_max);
    state.batches.resize(ranks);
    state.evictions.resize(ranks);
  }
}

Rank HetReplay::home_of(Key key) const {
  return Rank{kernels::home_of(key, static_cast<std::uint32_t>(options_.ranks))};
}

void HetReplay::announce(Rank reader, std::size_t table, std::span<Key const> keys) {
  auto& batch = tables_[table].batches[number(reader)];
  batch.insert(batch.end(), keys.begin(), keys.end());
}

void HetReplay::read(std::uint32_t table, Rank rank, HetStep& step) {
  auto& state = tables_[table];
  auto& cache = state.caches[number(rank)];
  std::vector<std::pair<Key, std::uint64_t>> missing;
  for (Key const key : state.batches[number(rank)]) {
    std::uint64_t const version = state.versions[key];
    ++step.sent.keys;
    if (home_of(key) == rank) continue;
    auto* const line = cache.use(key);
    if (line != nullptr && version - line->version <= options_.read_bound) {
      ++step.sent.leased;
      continue;
    }
    step.fetched.push_back({.table = table, .rank = rank, .key = key});
    if (line != nullptr) {
      line->version = version;
    } else {
      missing.emplace_back(key, version);
    }
  }
  auto& evictions = state.evictions[number(rank)];
  for (auto const& [key, version] : missing) {
    auto const evicted = cache.insert(key, version);
    if (evicted && evicted->updates > 0) evictions[evicted->key] = evicted->updates;
  }
}

void HetReplay::update(std::uint32_t table, Rank rank, HetStep& step) {
  auto& state = tables_[table];
  auto& cache = state.caches[number(rank)];
  auto& evictions = state.evictions[number(rank)];
  auto const push = [&](Key key, std::uint64_t updates) {
    state.versions[key] += updates;
    step.pushed.push_back({table, rank, key, updates});
  };
  for (Key const key : state.batches[number(rank)]) {
    if (home_of(key) == rank) {
      ++state.versions[key];
    } else if (auto* const line = cache.find(key); line == nullptr) {
      auto const waiting = evictions.extract(key);
      push(key, 1 + (waiting.empty() ? 0 : waiting.mapped()));
    } else if (++line->updates > options_.write_bound) {
      push(key, line->updates);
      line->version += std::exchange(line->updates, 0);
    }
  }
  for (auto const& [key, updates] : evictions) push(key, updates);
  evictions.clear();
  state.batches[number(rank)].clear();
}

// Counts the bytes of the rows that are sent.
void HetReplay::count(HetStep& step) const {
  auto& sent = step.sent;
  auto const node_of = [&](Rank rank) { return number(rank) / static_cast<std::uint32_t>(options_.ranks_of_node); };
  auto const send = [&](Rank from, Rank to, std::int64_t of_row, double& of_kind) {
    (node_of(from) == node_of(to) ? sent.from_node : sent.from_others)[number(to)] += static_cast<double>(of_row);
    of_kind += static_cast<double>(of_row);
  };
  for (auto const& row : step.fetched) {
    send(home_of(row.key), row.rank, options_.tables[row.table].bytes.read, sent.value_bytes);
  }
  for (auto const& row : step.pushed) {
    send(row.rank, home_of(row.key), options_.tables[row.table].bytes.update, sent.gradient_bytes);
  }
  sent.reads = step.fetched.size();
  sent.updates = step.pushed.size();
  auto const messages = static_cast<double>(sent.leased + 2 * sent.reads + sent.updates);
  sent.key_bytes = messages * (kKeyBytes + kVersionBytes);
}

HetStep HetReplay::advance() {
  HetStep step;
  auto const ranks = static_cast<std::uint32_t>(options_.ranks);
  for (auto* const bytes : {&step.sent.from_node, &step.sent.from_others}) bytes->assign(ranks, 0);
  for (std::uint32_t table = 0; table < tables_.size(); ++table) {
    auto const& bytes = options_.tables[table].bytes;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      auto& batch = tables_[table].batches[rank];
      std::ranges::sort(batch, {}, kernels::hash_of);
      batch.erase(std::unique(batch.begin(), batch.end()), batch.end());
      auto const others = std::ranges::count_if(batch, [&](Key key) { return home_of(key) != Rank{rank}; });
      step.plain_bytes +=
          static_cast<double>(others) * (static_cast<double>(bytes.read + bytes.update) + 2 * kKeyBytes);
      read(table, Rank{rank}, step);
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank) update(table, Rank{rank}, step);
  }
  count(step);
  return step;
}

std::vector<std::uint64_t> HetReplay::rows_owned(std::size_t table) const {
  std::vector<std::uint64_t> rows(static_cast<std::size_t>(options_.ranks));
  for (auto const& [key, version] : tables_[table].versions) ++rows[number(home_of(key))];
  return rows;
}

}  // namespace gpups::cache
