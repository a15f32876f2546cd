// SPDX-License-Identifier: Apache-2.0
#include "tests/cache/cluster.hpp"

#include <fmt/core.h>

#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>

#include "tests/cache/allreduce_workload.hpp"

namespace gpups::test {
namespace {

std::mt19937_64 generator(std::uint64_t seed, std::uint64_t a, std::uint64_t b) {
  std::seed_seq sequence{seed, seed >> 32, a, b};
  return std::mt19937_64(sequence);
}

// Returns the key of row 0 .. keys - 1. Keys are spread over all 64 bits and include both extreme values.
Key key_of(std::uint64_t row) {
  if (row == 0) return Key{0};
  if (row == 1) return Key{~std::uint64_t{0}};
  return Key{row * 0x9E3779B97F4A7C15U};
}

int owner_of_microbatch(int ranks, int microbatch) {
  int rank = 0;
  while ((rank + 1) * kMicrobatches / ranks <= microbatch) ++rank;
  return rank;
}

// The batch of one rank in one step.
struct Batch {
  Matrix<float> sources;  // one for each entry: (amount, -amount)
  PreparedBatch prepared;
};

std::shared_ptr<Batch> prepare(Store& store, Stream& stream, Workload const& workload, std::int64_t step) {
  int const rank = static_cast<int>(number(store.rank()));
  if (!takes_part(workload, store.ranks(), step, rank)) return nullptr;
  auto batch = std::make_shared<Batch>();
  std::vector<Key> keys;
  std::vector<int> amounts;
  std::size_t samples = 0;
  for (int m = 0; m < kMicrobatches; ++m) {
    if (owner_of_microbatch(store.ranks(), m) != rank) continue;
    ++samples;
    for (auto const& use : uses(workload, step, m)) {
      keys.push_back(use.key);
      amounts.push_back(use.amount);
    }
  }
  std::vector<float> sources(amounts.size() * row_stride(2), 0.0F);
  for (std::size_t i = 0; i < amounts.size(); ++i) {
    sources[i * row_stride(2)] = static_cast<float>(amounts[i]);
    sources[i * row_stride(2) + 1] = static_cast<float>(-amounts[i]);
  }
  batch->sources = Matrix<float>(stream.device(), amounts.size(), 2);
  copy<float>(stream, batch->sources.view().flat(), View<float const>(sources));
  auto const keys_there = to_device(stream, keys);
  TableBatch const part{.table = TableId{0}, .keys = keys_there};
  batch->prepared = store.prepare(stream, Clock{step}, {&part, 1}, samples);
  return batch;
}

void check_read(Store const& store, Stream& stream, Batch const& batch, Matrix<float> const& rows,
                ReferenceTable const& expected) {
  auto const keys = to_host(stream, batch.prepared.keys(0));
  auto const values = to_host(stream, rows.view().slice(0, keys.size()).flat());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    float const* const row = values.data() + i * row_stride(2);
    double const value = expected.value(keys[i]);
    if (row[0] == value && row[1] == -value) continue;
    throw std::logic_error(fmt::format("rank {} read ({}, {}) for key {} at step {}, not {}", number(store.rank()),
                                       row[0], row[1], number(keys[i]), number(store.clock()), value));
  }
}

// Returns the first column of the rows of `keys`, read by a look-up.
std::vector<float> look_up(Store& store, Stream& stream, std::vector<Key> const& keys,
                           std::vector<std::uint8_t>* found = nullptr) {
  auto const keys_there = to_device(stream, keys);
  Matrix<float> const rows(stream.device(), keys.size(), 2);
  Array<std::uint8_t> const marks(stream.device(), keys.size());
  store.lookup(stream, TableId{0}, keys_there, rows, marks);
  if (found != nullptr) *found = to_host(stream, marks.view());
  auto const flat = to_host(stream, rows.view().flat());
  std::vector<float> values;
  for (std::size_t i = 0; i < keys.size(); ++i) values.push_back(flat[i * row_stride(2)]);
  return values;
}

// Compares rows that are looked up between steps with the reference.
void check_lookup(Store& store, Stream& stream, Workload const& workload, ReferenceTable const& expected) {
  std::vector<Key> keys;
  for (auto const& use : uses(workload, number(store.clock()), 0)) keys.push_back(use.key);
  auto const values = look_up(store, stream, keys);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (values[i] == expected.value(keys[i])) continue;
    throw std::logic_error(fmt::format("rank {} looked up {} for key {} before step {}, not {}", number(store.rank()),
                                       values[i], number(keys[i]), number(store.clock()), expected.value(keys[i])));
  }
}

// Returns true for a fraction `share` of the pairs (step, a). The seed alone decides for which.
bool chosen(Workload const& workload, double share, std::int64_t step, std::uint64_t a) {
  auto random = generator(workload.seed ^ 0x10C, static_cast<std::uint64_t>(step), a);
  return static_cast<double>(random() % 1000) < 1000 * share;
}

}  // namespace

std::vector<Use> uses(Workload const& workload, std::int64_t step, int microbatch) {
  auto random = generator(workload.seed, static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(microbatch));
  std::vector<Use> result(random() % 7);
  for (auto& use : result) {
    std::uint64_t const hot = random() % 2;
    use.key = key_of(random() % (hot != 0 ? workload.keys / 8 + 1 : workload.keys));
    use.amount = kSamples * (static_cast<int>(random() % 9) - 4);
  }
  return result;
}

std::vector<Key> erased(Workload const& workload, std::int64_t step, int microbatch) {
  auto random =
      generator(workload.seed ^ 0xE7A5E, static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(microbatch));
  std::vector<Key> keys(random() % 4);
  for (Key& key : keys) key = key_of(random() % (2 * workload.keys));  // half of them never had a row
  return keys;
}

bool takes_part(Workload const& workload, int ranks, std::int64_t step, int rank) {
  auto random = generator(workload.seed ^ 0xABCD, static_cast<std::uint64_t>(step), 0);
  // All ranks are idle in the same steps, so that the work does not depend on the number of ranks.
  bool const all_idle = static_cast<double>(random() % 1000) < 1000 * workload.idle_share;
  return !all_idle && (rank + 1) * kMicrobatches / ranks > rank * kMicrobatches / ranks;
}

void ReferenceTable::advance() {
  std::map<Key, std::vector<double>> changes;  // one for each occurrence in this step
  for (int m = 0; m < kMicrobatches && takes_part(workload_, ranks_, step_, 0); ++m) {
    for (auto const& use : uses(workload_, step_, m)) {
      changes[use.key].push_back(static_cast<double>(use.amount) / kSamples);
    }
  }
  for (auto const& [key, of_key] : changes) {
    last_step_[key] = step_;
    if (!values_.contains(key)) {
      auto& occurrences = occurrences_[key];
      occurrences += static_cast<std::uint32_t>(of_key.size());
      if (occurrences < workload_.admission_count) continue;
      occurrences_.erase(key);
    }
    for (double change : of_key) values_[key] -= change;
  }
  ++step_;
}

void ReferenceTable::erase(std::vector<Key> const& keys) {
  for (Key const key : keys) {
    values_.erase(key);
    occurrences_.erase(key);
    last_step_.erase(key);
  }
}

std::size_t ReferenceTable::expire() {
  std::vector<Key> old;
  for (auto const& [key, step] : last_step_) {
    if (step < step_ - workload_.age) old.push_back(key);
  }
  std::size_t const before = values_.size();
  erase(old);
  return before - values_.size();
}

double ReferenceTable::value(Key key) const {
  auto const found = values_.find(key);
  return found == values_.end() ? 0.0 : found->second;
}

namespace {

// Returns whether the batch of step `batch` may be prepared while `step` is trained.
bool may_prepare(Workload const& workload, std::int64_t batch, std::int64_t step) {
  if (batch > step + workload.lookahead) return false;
  for (int const every : {workload.expire_every, workload.localize_every}) {
    if (every > 0 && batch / every != step / every) return false;
  }
  return true;
}

// Erases and expires rows before the next step, and compares the number of remaining rows with the reference.
void erase_and_expire(Store& store, Stream& stream, Workload const& workload, ReferenceTable& expected) {
  auto const step = number(store.clock());
  std::vector<Key> mine;
  for (int m = 0; m < kMicrobatches; ++m) {
    auto const keys = erased(workload, step, m);
    expected.erase(keys);
    bool const is_mine = owner_of_microbatch(store.ranks(), m) == static_cast<int>(number(store.rank()));
    if (is_mine) mine.insert(mine.end(), keys.begin(), keys.end());
  }
  store.erase(stream, TableId{0}, to_device(stream, mine));
  auto const want = expected.expire(), got = store.expire(TableId{0}, workload.age);
  auto const rows = store.size(TableId{0});
  if (got != want || rows != expected.rows()) {
    throw std::logic_error(fmt::format("{} rows expired before step {}, and {} are left; not {} and {}", got, step,
                                       rows, want, expected.rows()));
  }
}

// Moves random rows to this rank; some of them have never been used, and other ranks may want them too. The owners
// that the homes then name are those of a reference.
void localize(Store& store, Stream& stream, Workload const& workload, std::map<Key, Rank>& owners) {
  auto const step = number(store.clock());
  for (std::uint32_t rank = static_cast<std::uint32_t>(store.ranks()); rank-- > 0;) {
    auto random = generator(workload.seed ^ 0x10CA, static_cast<std::uint64_t>(step), rank);
    std::vector<Key> keys(random() % (workload.keys + 2));
    for (Key& key : keys) key = key_of(random() % (workload.keys + workload.keys / 4));
    for (Key const key : keys) owners[key] = Rank{rank};  // the lowest rank comes last
    if (Rank{rank} == store.rank()) store.localize(stream, TableId{0}, to_device(stream, keys));
  }
  for (auto const& [key, owner] : owners) {
    if (number(key) % 3 != 0) continue;
    auto const row = store.where(TableId{0}, key);
    if (row.owner != owner) {
      throw std::logic_error(fmt::format("rank {} owns key {} before step {}, not rank {}", number(row.owner),
                                         number(key), step, number(owner)));
    }
  }
  store.wait_barrier();
}

}  // namespace

Outcome train(Group const& group, Workload const& workload) {
  Store store(group, {.device = workload.device,
                      .threads = workload.threads,
                      .placement = workload.placement,
                      .placement_bytes_min = 0,
                      .key_format = key_format_of(workload.key_formats, group.rank())});
  store.add_table({.name = "rows",
                   .dim = 2,
                   .initializer = {Initializer::Kind::kConstant, 0.0F},
                   .optimizer = {.kind = Optimizer::Kind::kSgd, .learning_rate = 1.0F},
                   .admission_count = workload.admission_count,
                   .refresh_compression = workload.refresh_compression,
                   .dictionary_keys = workload.dictionary_keys});
  auto stream = store.make_stream();
  ReferenceTable expected(workload, store.ranks());
  Sums sums(group, stream, workload.seed, workload.reduce_share);
  std::deque<std::shared_ptr<Batch>> ahead;
  std::int64_t prepared = 0;
  Matrix<float> const rows(workload.device, workload.keys, 2);
  std::map<Key, Rank> owners;  // of rows that were localized since the last erase

  for (std::int64_t step = 0; step < workload.steps; ++step) {
    for (; may_prepare(workload, prepared, step); ++prepared) {
      ahead.push_back(prepare(store, stream, workload, prepared));
    }
    auto const batch = ahead.front();
    ahead.pop_front();
    sums.maybe_begin();
    if (batch != nullptr) {
      store.wait_ready(batch->prepared);
      MatrixView<float> const out = rows;
      store.pull(stream, batch->prepared, {&out, 1});
      if (workload.check_every > 0 && step % workload.check_every == 0)
        check_read(store, stream, *batch, rows, expected);
      TableGradients const gradients{.sources = batch->sources};
      store.push(stream, batch->prepared, {&gradients, 1});
    }
    sums.maybe_begin();
    store.advance_clock();
    sums.maybe_begin();
    expected.advance();
    sums.wait_all_but(static_cast<std::size_t>(step % 4));
    if (workload.expire_every > 0 && (step + 1) % workload.expire_every == 0)
      erase_and_expire(store, stream, workload, expected), owners.clear();
    if (workload.localize_every > 0 && (step + 1) % workload.localize_every == 0)
      localize(store, stream, workload, owners);
    if (chosen(workload, workload.barrier_share, step, ~0ULL)) store.wait_barrier();
    if (chosen(workload, workload.lookup_share, step, number(store.rank()))) {
      check_lookup(store, stream, workload, expected);
    }
  }
  sums.wait_all_but(0);

  Outcome outcome;
  outcome.sums = sums.begun();
  outcome.hash = store.table_hash();
  outcome.rows = store.size(TableId{0});
  if (outcome.rows != expected.rows()) {
    throw std::logic_error(fmt::format("{} rows exist, not {}", outcome.rows, expected.rows()));
  }
  std::vector<Key> keys;
  for (auto const& [key, value] : expected.values()) keys.push_back(key);
  std::vector<std::uint8_t> found;
  auto const values = look_up(store, stream, keys, &found);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (found[i] != 1 || values[i] != expected.value(keys[i])) {
      throw std::logic_error(
          fmt::format("key {} has the final value {}, not {}", number(keys[i]), values[i], expected.value(keys[i])));
    }
  }
  auto const stats = store.stats();
  outcome.late_keys = stats.late_keys;
  outcome.remote_keys = stats.remote_keys;
  store.wait_barrier();
  return outcome;
}

Outcome train_all(std::vector<Group> const& group, Workload const& workload) {
  std::mutex mutex;
  Outcome all;
  run_ranks(group, [&](Group mine) {
    auto const outcome = train(mine, workload);
    std::lock_guard lock(mutex);
    if (all.hash != 0 && all.hash != outcome.hash) throw std::logic_error("ranks have different table hashes");
    all.hash = outcome.hash;
    all.rows = outcome.rows;
    all.sums = outcome.sums;
    all.late_keys += outcome.late_keys;
    all.remote_keys += outcome.remote_keys;
  });
  return all;
}

}  // namespace gpups::test
