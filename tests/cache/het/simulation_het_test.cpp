// SPDX-License-Identifier: Apache-2.0
// Whatever ranks use, the replay of HET keeps its bounds, and sends a row only if a bound or an eviction requires it.
// The test knows all updates that ranks have made, and follows from what is sent which of them homes and copies have.
// GPUPS_SIM_SEEDS sets the number of seeds, GPUPS_SIM_FIRST the first seed. A failure names its seed.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "cache/placement/het/het_replay.hpp"
#include "kernels/base/hash.hpp"
#include "tests/cache/het/naive_cache.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::test::simulation_het_test {
namespace {

using cache::HetReplay;
using cache::HetStep;

// Numbers of updates, by the rank that made them.
using Updates = std::vector<std::uint64_t>;

struct RowTruth {
  Updates made, applied;        // so far; by the home
  std::vector<Updates> copied;  // by the rank that has the copy: what the home had applied when it sent the value
};

// What all seeds have together, which shows that the cases occur.
struct Occurred {
  std::uint64_t old_reads = 0, stale_copies = 0, evictions = 0, unadmitted = 0, bound_pushes = 0;
};

HetReplay::HetOptions options_of(Random& random) {
  constexpr std::uint64_t kBounds[] = {0, 1, 3, 10, 100};
  HetReplay::HetOptions options{.eviction = cache::kEvictions[below(random, 3)],
                                .ranks = static_cast<int>(2 + below(random, 4)),
                                .ranks_of_node = static_cast<int>(1 + below(random, 3)),
                                .read_bound = kBounds[below(random, 5)],
                                .write_bound = kBounds[below(random, 5)]};
  for (std::uint64_t tables = 1 + below(random, 2); tables > 0; --tables) {
    auto const bytes = static_cast<std::int64_t>(1 + below(random, 300));
    options.tables.push_back({{.read = bytes, .update = 2 * bytes, .move = 0}, 1 + below(random, 40)});
  }
  return options;
}

class HetModel {
 public:
  HetModel(HetReplay::HetOptions const& options, Occurred& occurred) : options_(options), occurred_(occurred) {
    for (auto const& table : options.tables) {
      rows_.emplace_back();
      caches_.emplace_back();
      for (int rank = 0; rank < options.ranks; ++rank) {
        caches_.back().emplace_back(options.eviction, table.lines_max);
      }
    }
  }

  // Follows a step. batches: keys by table and rank, distinct.
  void follow(std::vector<std::vector<std::vector<Key>>> const& batches, HetStep const& step) {
    std::set<std::tuple<std::uint32_t, Rank, Key>> fetched;
    for (auto const& row : step.fetched) ASSERT_TRUE(fetched.insert({row.table, row.rank, row.key}).second);
    plain_bytes_ = 0;
    std::size_t reads = 0;
    for (std::uint32_t table = 0; table < rows_.size(); ++table) {
      for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
        auto keys = batches[table][rank];
        std::ranges::sort(keys, {}, kernels::hash_of);
        ASSERT_NO_FATAL_FAILURE(read(table, rank, keys, fetched, reads));
      }
    }
    ASSERT_EQ(reads, fetched.size());
    for (std::uint32_t table = 0; table < rows_.size(); ++table) {
      for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
        for (Key const key : batches[table][rank]) {
          auto& row = row_of(table, key);
          ++row.made[rank];
          if (home_of(key) == rank) ++row.applied[rank];
        }
      }
    }
    ASSERT_NO_FATAL_FAILURE(push(step));
    check_bytes(step);
  }

  // Checks the updates that wait after a step, and the lines.
  void check_lines(HetReplay const& replay) {
    for (std::uint32_t table = 0; table < rows_.size(); ++table) {
      for (std::uint32_t rank = 0; rank < ranks(); ++rank) {
        std::map<Key, std::uint64_t> waiting;
        std::vector<Key> cached;
        for (auto const& line : replay.cache_of(Rank{rank}, table).lines()) {
          cached.push_back(line.key);
          waiting[line.key] = line.updates;
        }
        ASSERT_EQ(cached, caches_[table][rank].in_order());
        for (auto const& [key, row] : rows_[table]) {
          auto const unpushed = row.made[rank] - row.applied[rank];
          ASSERT_LE(unpushed, options_.write_bound);
          ASSERT_EQ(unpushed, waiting[key]);  // 0 without a line
        }
      }
    }
  }

 private:
  std::uint32_t ranks() const { return static_cast<std::uint32_t>(options_.ranks); }
  std::uint32_t home_of(Key key) const { return kernels::home_of(key, ranks()); }
  RowTruth& row_of(std::uint32_t table, Key key) {
    Updates const none(ranks());
    return rows_[table].try_emplace(key, RowTruth{none, none, std::vector(ranks(), none)}).first->second;
  }

  void read(std::uint32_t table, std::uint32_t rank, std::vector<Key> const& keys,
            std::set<std::tuple<std::uint32_t, Rank, Key>> const& fetched, std::size_t& reads) {
    auto& cache = caches_[table][rank];
    std::vector<Key> missing;
    for (Key const key : keys) {
      auto& row = row_of(table, key);
      bool const was_fetched = fetched.contains({table, Rank{rank}, key});
      if (home_of(key) == rank) {
        ASSERT_FALSE(was_fetched);
        continue;
      }
      auto const& bytes = options_.tables[table].bytes;
      plain_bytes_ += static_cast<double>(bytes.read + bytes.update + 16);
      bool const was_cached = cache.use(key);
      std::uint64_t missed = 0;  // updates of others that the copy lacks
      for (std::uint32_t other = 0; other < ranks(); ++other) {
        if (other != rank) missed += row.applied[other] - row.copied[rank][other];
      }
      ASSERT_EQ(was_fetched, !was_cached || missed > options_.read_bound) << missed;
      occurred_.old_reads += !was_fetched && missed > 0 ? 1 : 0;
      occurred_.stale_copies += was_fetched && was_cached ? 1 : 0;
      if (was_fetched) row.copied[rank] = row.applied;
      if (was_fetched) ++reads;
      if (!was_cached) missing.push_back(key);
    }
    for (Key const key : missing) {
      if (auto const evicted = cache.insert(key)) {
        auto const& row = row_of(table, *evicted);
        occurred_.evictions += row.made[rank] > row.applied[rank] ? 1 : 0;
      }
      occurred_.unadmitted += cache.has(key) ? 0 : 1;
    }
  }

  // Rows are pushed with all updates that wait, because of the bound or because they have no line any more.
  void push(HetStep const& step) {
    for (auto const& [table, rank, key, updates] : step.pushed) {
      auto& row = row_of(table, key);
      std::uint32_t const r = number(rank);
      ASSERT_NE(home_of(key), r);
      ASSERT_GT(updates, 0);
      ASSERT_EQ(updates, row.made[r] - row.applied[r]);
      bool const has_line = caches_[table][r].has(key);
      ASSERT_TRUE(!has_line || updates > options_.write_bound);
      occurred_.bound_pushes += has_line && options_.write_bound > 0 ? 1 : 0;
      row.applied[r] += updates;
    }
  }

  void check_bytes(HetStep const& step) const {
    auto const& sent = step.sent;
    double values = 0, gradients = 0, received = 0;
    for (auto const& row : step.fetched) values += static_cast<double>(options_.tables[row.table].bytes.read);
    for (auto const& row : step.pushed) gradients += static_cast<double>(options_.tables[row.table].bytes.update);
    for (std::uint32_t rank = 0; rank < ranks(); ++rank) received += sent.from_node[rank] + sent.from_others[rank];
    EXPECT_EQ(sent.value_bytes, values);
    EXPECT_EQ(sent.gradient_bytes, gradients);
    EXPECT_EQ(received, values + gradients);
    EXPECT_EQ(step.plain_bytes, plain_bytes_);
    EXPECT_EQ(sent.reads, step.fetched.size());
    EXPECT_EQ(sent.updates, step.pushed.size());
    auto const pairs = sent.leased + 2 * sent.reads + sent.updates;  // a key and a version or a number
    EXPECT_EQ(sent.key_bytes, 16.0 * static_cast<double>(pairs));
  }

  HetReplay::HetOptions options_;
  Occurred& occurred_;
  std::vector<std::map<Key, RowTruth>> rows_;    // by table
  std::vector<std::vector<NaiveCache>> caches_;  // by table and rank
  double plain_bytes_ = 0;
};

void simulate(std::uint64_t seed, Occurred& occurred) {
  Random random(seed);
  auto const options = options_of(random);
  auto const ranks = static_cast<std::size_t>(options.ranks);
  std::size_t const range = 5 + below(random, 90), most = 1 + below(random, 30);
  HetReplay replay(options);
  HetModel model(options, occurred);
  for (int step = 0; step < 40; ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    std::vector batches(options.tables.size(), std::vector<std::vector<Key>>(ranks));
    for (std::size_t table = 0; table < batches.size(); ++table) {
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        auto const drawn = zipf_keys(random, below(random, most + 1), range);
        replay.announce(Rank{rank}, table, drawn);
        std::set<Key> const distinct(drawn.begin(), drawn.end());
        batches[table][rank].assign(distinct.begin(), distinct.end());
      }
    }
    auto const counts = replay.advance();
    ASSERT_NO_FATAL_FAILURE(model.follow(batches, counts));
    ASSERT_NO_FATAL_FAILURE(model.check_lines(replay));
  }
}

TEST(HetSimulation, EveryReadAndEveryLineKeepsItsBound) {
  std::uint64_t const first = environment_number("GPUPS_SIM_FIRST", 0),
                      count = environment_number("GPUPS_SIM_SEEDS", 200);
  Occurred occurred;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_NO_FATAL_FAILURE(simulate(seed, occurred));
  }
  EXPECT_GT(occurred.old_reads, count);
  EXPECT_GT(occurred.stale_copies, count);
  EXPECT_GT(occurred.evictions, count);
  EXPECT_GT(occurred.unadmitted, count);
  EXPECT_GT(occurred.bound_pushes, count);
}

}  // namespace
}  // namespace gpups::test::simulation_het_test
