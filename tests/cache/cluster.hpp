// SPDX-License-Identifier: Apache-2.0
// N ranks that train a synthetic workload and check every value they read.
//
// Gradients are whole numbers, chosen by step and microbatch alone, so the value of every row at every step is known
// without the store: a lost, doubled, late or early update shows as a wrong number.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include "gpups/gpups.hpp"
#include "tests/support/on_devices.hpp"

namespace gpups::test {

struct Workload {
  int steps = 20;
  std::uint64_t seed = 1;
  std::uint64_t keys = 40;  // distinct ones there are, some of them hot
  int lookahead = 4;        // batches prepared ahead; 0: just before they are read
  int threads = 1;
  Device device{};
  std::uint32_t admission_count = 1;                   // of the table
  RowCompression refresh_compression{};                // likewise; only such as leave values as they are
  std::size_t dictionary_keys = std::size_t{1} << 20;  // likewise
  int forget_every = 0;        // steps between calls of erase and expire; 0: never. No batch is prepared across one
  int age = 3;                 // what expire is given
  double idle_share = 0.1;     // of (rank, step) pairs that have no batch
  double lookup_share = 0.0;   // of (rank, step) pairs that look rows up between steps
  double barrier_share = 0.0;  // of steps with a barrier while the round is still going on
  double reduce_share = 0.0;   // of steps in which arrays are summed over the ranks, from some call to another
  int check_every = 1;         // steps between checks of what was read; 0: never
};

// A use of a row in a global batch, and what it adds to its gradient. A table of dim 2; columns differ in sign.
struct Use {
  Key key{};
  int amount;  // whole; the sum over the batch is divided by `kSamples`
};

inline constexpr int kMicrobatches = 8;
inline constexpr int kSamples = 8;  // of a global batch: gradients are multiples of it, so that values stay whole

// A pure function: what microbatch m of step t uses.
std::vector<Use> uses(Workload const& workload, std::int64_t step, int microbatch);
// A pure function: what the rank that has microbatch m erases before step t. Others may erase the same.
std::vector<Key> erased(Workload const& workload, std::int64_t step, int microbatch);
// Whether a rank takes part in a step; microbatches of ranks that do not are nobody's.
bool takes_part(Workload const& workload, int ranks, std::int64_t step, int rank);

// The values that rows have before step t: made by loops and a std::map, for the same number of ranks.
class ReferenceTable {
 public:
  ReferenceTable(Workload const& workload, int ranks) : workload_(workload), ranks_(ranks) {}
  void advance();  // applies the next step
  void erase(std::vector<Key> const& keys);
  std::size_t expire();  // what Store::expire() should return
  double value(Key key) const;
  std::size_t rows() const { return values_.size(); }
  std::map<Key, double> const& values() const { return values_; }  // of rows that exist

 private:
  Workload workload_;
  int ranks_;
  std::int64_t step_ = 0;
  std::map<Key, double> values_;
  std::map<Key, std::uint32_t> sightings_;  // of keys that wait for admission
  std::map<Key, std::int64_t> last_step_;   // of both
};

struct Outcome {
  std::uint64_t hash = 0;
  std::uint64_t late_keys = 0;
  std::uint64_t remote_keys = 0;
  std::size_t rows = 0;
  std::uint64_t sums = 0;  // arrays summed over the ranks
};

// Trains on one rank of a group; throws std::logic_error where a value that was read is not the expected one.
Outcome train(Group const& group, Workload const& workload);

// Trains on all of them and checks the tables at the end; the outcomes agree, or it throws.
Outcome train_all(std::vector<Group> const& group, Workload const& workload);

}  // namespace gpups::test
