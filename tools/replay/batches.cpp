// SPDX-License-Identifier: Apache-2.0
#include "tools/replay/batches.hpp"

#include <algorithm>
#include <random>
#include <unordered_set>
#include <utility>

#include "cache/placement/policy.hpp"
#include "kernels/base/check.hpp"
#include "trainer/base/random.hpp"
#include "trainer/placement/trace_reader.hpp"

namespace gpups::tools {
namespace {

constexpr int kRanksOfNode = 8;

// One table whose keys have a Zipf distribution, as a function of rank and step.
class ZipfBatches : public ReplayBatches {
 public:
  explicit ZipfBatches(ReplayCommand const& o) : o_(o), zipf_(o.values, o.exponent) {}

  std::vector<TableOptions> tables() const override {
    return {{.name = "values", .dim = o_.dim, .optimizer = {.kind = o_.optimizer}}};
  }
  int default_ranks() const override { return 4; }
  std::int64_t default_lookahead() const override { return 10; }
  std::int64_t window() const override { return cache::kPolicyWindow; }
  std::int64_t default_staleness() const override { return 0; }
  int default_ranks_of_node() const override { return kRanksOfNode; }
  std::int64_t default_bytes_min() const override { return -1; }
  std::vector<std::size_t> rows() const override { return {o_.values}; }
  double samples(int ranks) const override {
    return static_cast<double>(first_batch() + static_cast<std::size_t>(ranks - 1) * o_.batch);
  }

  std::vector<trainer::TracedPart> parts(std::uint32_t rank, std::int64_t step, int) const override {
    std::mt19937_64 random(static_cast<std::uint64_t>(step) << 32 | rank);
    // Popularity shifts: from some steps on, other keys are frequent.
    std::uint64_t const shift = o_.shift_every == 0 ? 0 : static_cast<std::uint64_t>(step / o_.shift_every) * 7919;
    std::vector<Key> keys((rank == 0 ? first_batch() : o_.batch) * o_.features);
    for (Key& key : keys) {
      bool const own = static_cast<double>(random() >> 11) * 0x1p-53 < o_.own;
      key = Key{(own ? std::uint64_t{rank} + 1 : 0) << 32 | (zipf_(random) + shift) % o_.values};
    }
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    return {{0, std::move(keys)}};
  }

 private:
  std::size_t first_batch() const { return o_.first_batch.value_or(o_.batch); }

  ReplayCommand const& o_;
  trainer::Zipf zipf_;
};

// Recorded batches. With k times as many ranks as were recorded, a step has the batches of k consecutive steps, so a
// rank's batches keep their size.
class TracedBatches : public ReplayBatches {
 public:
  explicit TracedBatches(std::string const& folder) : trace_(trainer::read_placement_trace(folder)) {}

  std::vector<TableOptions> tables() const override { return trace_.description.tables; }
  int default_ranks() const override {
    GPUPS_REQUIRE(recorded() > 1,
                  "the trace is of a run with one rank (it sends nothing): give --ranks K, for batches of K "
                  "consecutive steps");
    return recorded();
  }
  std::int64_t default_lookahead() const override { return trace_.description.lookahead; }
  std::int64_t window() const override { return trace_.description.window; }
  std::int64_t default_staleness() const override { return trace_.description.staleness; }
  int default_ranks_of_node() const override {
    auto const& about = trace_.description;
    return about.ranks > 1 && about.ranks_of_host > 0 ? about.ranks_of_host : kRanksOfNode;
  }
  std::int64_t default_bytes_min() const override { return trace_.description.bytes_min; }
  // Those that any batch of the trace uses.
  std::vector<std::size_t> rows() const override {
    std::vector<std::unordered_set<Key>> used(trace_.description.tables.size());
    for (auto const& step : trace_.steps) {
      for (auto const& parts : step) {
        for (auto const& [table, keys] : parts) used[table].insert(keys.begin(), keys.end());
      }
    }
    std::vector<std::size_t> rows;
    for (auto const& keys : used) rows.push_back(keys.size());
    return rows;
  }
  std::int64_t steps(int ranks) const override {
    GPUPS_REQUIRE(
        ranks % recorded() == 0,
        "--ranks is {} and the trace has {} ranks (batches of k x {} ranks are those of k consecutive steps): "
        "use a multiple of {}",
        ranks, recorded(), recorded(), recorded());
    return std::ssize(trace_.steps) / (ranks / recorded());
  }
  double samples(int ranks) const override {
    return static_cast<double>(trace_.description.batch_size) * ranks / recorded();
  }

  std::vector<trainer::TracedPart> parts(std::uint32_t rank, std::int64_t step, int ranks) const override {
    auto const each = static_cast<std::uint32_t>(recorded());
    auto const first = static_cast<std::size_t>(step) * static_cast<std::size_t>(ranks / recorded());
    return trace_.steps[first + rank / each][rank % each];
  }

 private:
  int recorded() const { return trace_.description.ranks; }

  trainer::PlacementTrace trace_;
};

}  // namespace

std::unique_ptr<ReplayBatches const> make_batches(ReplayCommand const& options) {
  if (options.trace.empty()) return std::make_unique<ZipfBatches const>(options);
  return std::make_unique<TracedBatches const>(options.trace);
}

}  // namespace gpups::tools
