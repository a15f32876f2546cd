// SPDX-License-Identifier: Apache-2.0
// Rows that are anywhere, over a simulated network: two tables with different stateful optimizers, owners that are
// random from the start and change between steps, replica budgets, rejected steps, and runs that save on some ranks and
// continue on others. Every pulled row and the tables at the end have the bits of one rank.
//
// GPUPS_SIM_SEEDS sets the number of seeds, GPUPS_SIM_FIRST the first seed. A failure names its seed.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <bit>
#include <deque>
#include <filesystem>
#include <limits>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "kernels/base/hash.hpp"
#include "tests/cache/cluster.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::test::simulation_placement_test {
namespace {

constexpr std::uint32_t kTables = 2;
constexpr std::uint32_t kParts = 3;  // of a batch: the first and the last are of one table, and may have keys in common
constexpr std::uint64_t kMicrobatches = 6;
constexpr std::size_t kDims[kTables] = {3, 5};

constexpr TableId table_of(std::uint32_t part) { return TableId{part % kTables}; }
constexpr std::size_t dim_of(std::size_t part) { return kDims[part % kTables]; }

// What a seed trains. The rows that it reads and updates depend on `seed`, `steps`, `keys`, `admission_count` and
// `rejected_share` alone, and how they travel on the rest.
struct PlacedRun {
  std::uint64_t seed;
  std::int64_t steps;
  std::uint64_t keys;
  std::uint32_t admission_count;
  double rejected_share;  // of steps
  std::int64_t saved_at;  // 0: never
  int lookahead;
  std::int64_t localize_every;  // 0: only before the first step
  double replica_fraction;
  RowCompression gradients, refreshes;
  std::size_t dictionary_keys;
  PlacementPolicy policy;
  bool late_rank = false;  // rank 1 prepares its batches late, and reads rows that move between other ranks
};

PlacedRun run_of(std::uint64_t seed) {
  Random random(seed);
  PlacedRun run{.seed = seed,
                .steps = 4 + static_cast<std::int64_t>(below(random, 12)),
                .keys = 2 + below(random, 60),
                .admission_count = below(random, 2) == 0 ? 1 : 1 + static_cast<std::uint32_t>(below(random, 6)),
                .rejected_share = below(random, 3) == 0 ? 0.2 : 0,
                .saved_at = 0,
                .lookahead = static_cast<int>(below(random, 7)),
                .localize_every = static_cast<std::int64_t>(below(random, 4)),
                .replica_fraction = std::vector{0., .05, .3, 1.}[below(random, 4)],
                .gradients = {},
                .refreshes = {},
                .dictionary_keys = below(random, 2) == 0 ? 1000 : below(random, 40),
                .policy = static_cast<PlacementPolicy>(below(random, 4)),
                .late_rank = false};
  run.saved_at = below(random, 2) == 0 ? 0 : 1 + static_cast<std::int64_t>(below(random, 4));
  run.late_rank = seed % 3 == 0;
  if (run.late_rank) {
    run.localize_every = 0;
    run.lookahead = 3 + static_cast<int>(below(random, 4));
    run.policy = below(random, 2) == 0 ? PlacementPolicy::kRandom : PlacementPolicy::kRelocate;
    return run;
  }
  if (below(random, 3) == 0) {
    run.refreshes = {.filter = {.age_max = 1, .threshold_max = 0}, .capacity_rows = 1 + below(random, 12)};
  }
  return run;
}

// The same with lossy codecs, whose results depend on the ranks and on the placement. No mirror is dropped: the order
// in which late batches are served would decide which.
PlacedRun lossy_run_of(std::uint64_t seed) {
  Random random(seed ^ 0x1055);
  PlacedRun run = run_of(seed);
  run.gradients = {.codec = below(random, 2) == 0 ? RowCodec::kInt8 : RowCodec::kHalf,
                   .filter = {.age_max = static_cast<std::uint32_t>(below(random, 3)), .threshold_max = 1e-3F},
                   .capacity_rows = 1 + below(random, 30)};
  run.refreshes = {.codec = RowCodec::kInt8};
  return run;
}

// The entries of a microbatch in one part.
std::vector<Key> keys_of(PlacedRun const& run, std::int64_t step, std::uint64_t microbatch, std::uint32_t part) {
  Random random(run.seed * 7919 + static_cast<std::uint64_t>(step) * 131 + microbatch * kParts + part);
  std::vector<Key> keys(below(random, 6));
  for (Key& key : keys) key = scrambled(below(random, below(random, 2) == 0 ? run.keys / 8 + 1 : run.keys));
  return keys;
}

// Rank 0 then pushes a gradient that is not a number, for its first entry.
bool is_rejected(PlacedRun const& run, std::int64_t step) {
  Random random(run.seed * 104729 + static_cast<std::uint64_t>(step));
  return uniform(random) < run.rejected_share && !keys_of(run, step, 0, 0).empty();
}

// What a rank has read, and the tables at the end.
struct PlacedOutcome {
  std::uint64_t reads = 0;  // the sum of a hash of each row that an entry reads
  std::uint64_t hash = 0;
  std::uint64_t remote = 0;  // rows that other ranks own, in the batches
  std::uint64_t moved = 0;   // rows that the policy has moved
};

class PlacedRank {
 public:
  PlacedRank(Group const& group, PlacedRun const& run)
      : run_(run),
        store_(group, {.threads = 1,
                       .replica_fraction = run.replica_fraction,
                       .placement = run.policy,
                       .placement_bytes_min = 0,
                       .key_format = key_format_of(run.seed / 3 % 9, group.rank())}) {
    for (std::uint32_t t = 0; t < kTables; ++t) {
      auto const kind = t == 0 ? Optimizer::Kind::kAdagrad : Optimizer::Kind::kAdam;
      store_.add_table({.name = fmt::format("table {}", t),
                        .dim = kDims[t],
                        .initializer = {Initializer::Kind::kUniform, 0.5F},
                        .optimizer = {.kind = kind, .learning_rate = 0.05F},
                        .admission_count = run.admission_count,
                        .value_type = t == 1 && run.seed % 5 == 0 ? DataType::kBFloat16 : DataType::kFloat,
                        .gradient_compression = run.gradients,
                        .refresh_compression = run.refreshes,
                        .dictionary_keys = run.dictionary_keys});
    }
  }

  // Trains until `last`, from the beginning or from the checkpoint in `folder`.
  PlacedOutcome train(std::int64_t last, std::filesystem::path const& folder, bool restores, bool saves) {
    if (restores) store_.restore(folder);
    localize();
    std::int64_t prepared = number(store_.clock());
    for (std::int64_t step = prepared; step < last; ++step) {
      for (; prepared < last && may_prepare(prepared, step); ++prepared) ahead_.push_back(prepare(prepared));
      train_step(step);
      if (run_.localize_every > 0 && (step + 1) % run_.localize_every == 0) localize();
    }
    ignore_rejection([&] { store_.wait_applied(); });
    if (saves) store_.save(folder, {});
    outcome_.hash = store_.table_hash();
    outcome_.remote = store_.stats().remote_keys;
    outcome_.moved = store_.stats().moved_rows;
    store_.wait_barrier();
    return outcome_;
  }

 private:
  bool mine(std::uint64_t microbatch) const {
    return microbatch % static_cast<std::uint64_t>(store_.ranks()) == number(store_.rank());
  }
  // No batch may be prepared across a call of localize().
  bool may_prepare(std::int64_t batch, std::int64_t step) const {
    bool const is_late = run_.late_rank && store_.rank() == Rank{1};
    return batch <= step + (is_late ? 0 : run_.lookahead) &&
           (run_.localize_every == 0 || batch / run_.localize_every == step / run_.localize_every);
  }

  // Moves random rows of both tables to this rank; other ranks may request them too.
  void localize() {
    ignore_rejection([&] { store_.wait_applied(); });
    for (std::uint32_t t = 0; t < kTables; ++t) {
      Random random((run_.seed * 31 + static_cast<std::uint64_t>(number(store_.clock()))) * 64 +
                    number(store_.rank()) * kTables + t);
      std::vector<Key> keys(below(random, run_.keys));
      for (Key& key : keys) key = scrambled(below(random, run_.keys + 4));  // some are never used
      store_.localize(stream_, TableId{t}, View<Key const>(keys));
    }
  }

  PreparedBatch prepare(std::int64_t step) {
    std::vector<Key> keys[kParts];
    std::size_t samples = 0;
    for (std::uint64_t m = 0; m < kMicrobatches; ++m) {
      if (!mine(m)) continue;
      ++samples;
      for (std::uint32_t p = 0; p < kParts; ++p) {
        auto const of_microbatch = keys_of(run_, step, m, p);
        keys[p].insert(keys[p].end(), of_microbatch.begin(), of_microbatch.end());
      }
    }
    std::vector<TableBatch> parts;
    for (std::uint32_t p = 0; p < kParts; ++p) {
      parts.push_back({.table = table_of(p), .keys = View<Key const>(keys[p])});
    }
    return store_.prepare(stream_, Clock{step}, parts, samples);
  }

  void train_step(std::int64_t step) {
    auto const batch = ahead_.front();
    ahead_.pop_front();
    ignore_rejection([&] { store_.wait_ready(batch); });
    std::vector<Matrix<float>> rows, sources;
    std::vector<MatrixView<float>> out;
    for (std::size_t p = 0; p < kParts; ++p) out.push_back(rows.emplace_back(Device::host(), batch.rows(p), dim_of(p)));
    store_.pull(stream_, batch, out);
    std::vector<TableGradients> gradients;
    for (std::size_t p = 0; p < kParts; ++p) {
      sources.emplace_back(Device::host(), batch.entries(p), dim_of(p));
      for (std::size_t e = 0; e < batch.entries(p); ++e) {
        auto const row = rows[p].row(batch.positions(p)[e]);
        count_read(step, p, batch.keys(p)[batch.positions(p)[e]], row);
        for (std::size_t j = 0; j < dim_of(p); ++j) sources[p].row(e)[j] = row[j] * 0.3F + 0.01F;
      }
      gradients.push_back({.sources = sources[p]});
    }
    if (is_rejected(run_, step) && store_.rank() == Rank{0})
      sources[0].row(0)[0] = std::numeric_limits<float>::quiet_NaN();
    store_.push(stream_, batch, gradients);
    store_.advance_clock();
  }

  void count_read(std::int64_t step, std::size_t part, Key key, std::span<float const> row) {
    auto hash = kernels::hash_of(Key{number(key) + static_cast<std::uint64_t>(step) * kParts + part});
    for (std::size_t j = 0; j < dim_of(part); ++j)
      hash = kernels::hash_of(Key{hash ^ std::bit_cast<std::uint32_t>(row[j])});
    outcome_.reads += hash;
  }

  // A rejected step changes no row, and training goes on.
  template <class F>
  void ignore_rejection(F call) {
    try {
      call();
    } catch (GradientError const&) {
      call();
    }
  }

  PlacedRun run_;
  Store store_;
  Stream stream_ = store_.make_stream();
  std::deque<PreparedBatch> ahead_;
  PlacedOutcome outcome_;
};

PlacedOutcome train_all(std::vector<Group> const& groups, PlacedRun const& run, std::int64_t last,
                        std::filesystem::path const& folder, bool restores, bool saves) {
  std::mutex mutex;
  PlacedOutcome all;
  run_ranks(groups, [&](Group const& group) {
    auto const mine = PlacedRank(group, run).train(last, folder, restores, saves);
    std::lock_guard const lock(mutex);
    all.reads += mine.reads;
    all.remote += mine.remote;
    all.moved += mine.moved;
    if (all.hash != 0 && all.hash != mine.hash) throw std::logic_error("ranks have different table hashes");
    all.hash = mine.hash;
  });
  return all;
}

// Trains on some ranks, saves, and continues on others, with another policy.
PlacedOutcome train_in_two(PlacedRun const& run, std::uint64_t network, std::filesystem::path const& folder) {
  Random random(run.seed + 17);
  auto const groups = [&](std::uint64_t part) {
    int const ranks = 2 + static_cast<int>(below(random, 3));
    return Group::simulated(ranks, {.seed = network + part, .delay_ms_max = 1.0 + static_cast<double>(network % 50)});
  };
  if (run.saved_at == 0) return train_all(groups(0), run, run.steps, folder, false, false);
  auto const before = train_all(groups(0), run, run.saved_at, folder, false, true);
  auto resumed = run;
  if (!run.late_rank) resumed.policy = static_cast<PlacementPolicy>(below(random, 4));
  auto after = train_all(groups(1), resumed, run.steps, folder, true, false);
  after.reads += before.reads;
  after.remote += before.remote;
  after.moved += before.moved;
  return after;
}

TEST(PlacementSimulation, EveryReadHasTheBitsOfOneRank) {
  std::uint64_t const first = environment_number("GPUPS_SIM_FIRST", 0),
                      count = environment_number("GPUPS_SIM_SEEDS", 200);
  std::uint64_t remote = 0, moved = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    TemporaryFolder const folder;
    auto const run = run_of(seed);
    auto const alone = train_all({Group::alone()}, run, run.steps, folder.path(), false, false);
    auto const all = train_in_two(run, seed, folder.path() / "saved");
    ASSERT_EQ(all.hash, alone.hash);
    ASSERT_EQ(all.reads, alone.reads);
    remote += all.remote;
    moved += all.moved;
  }
  EXPECT_GT(remote, 10 * count);
  EXPECT_GT(moved, 2 * count);
}

// Results of lossy codecs depend on who owns which rows, but not on the network.
TEST(PlacementSimulation, LossyCodecsGiveTheSameBitsOnAnyNetwork) {
  std::uint64_t const first = environment_number("GPUPS_SIM_FIRST", 0),
                      count = environment_number("GPUPS_SIM_SEEDS", 100);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    TemporaryFolder const folder;
    auto const run = lossy_run_of(seed);
    auto const one = train_in_two(run, seed, folder.path() / "one");
    auto const other = train_in_two(run, seed + 1000003, folder.path() / "other");
    ASSERT_EQ(one.hash, other.hash);
    ASSERT_EQ(one.reads, other.reads);
  }
}

}  // namespace
}  // namespace gpups::test::simulation_placement_test
