// SPDX-License-Identifier: Apache-2.0
// N ranks that train a synthetic workload and check every value they read.
//
// Gradients are whole numbers that depend on step and microbatch alone, so the value of every row at every step is
// known without the store: a lost, duplicate, late or early update gives a wrong number.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <vector>

#include "gpups/gpups.hpp"
#include "tests/support/on_devices.hpp"

namespace gpups::test {

// Returns the key format of a rank. formats: 0 to 2: the same on all ranks; 3 to 8: they differ.
inline KeyFormat key_format_of(std::uint64_t formats, Rank rank) {
  return static_cast<KeyFormat>((formats + number(rank) * (formats / 3)) % 3);
}

struct Workload {
  int steps = 20;
  std::uint64_t seed = 1;
  std::uint64_t keys = 40;  // number of distinct keys; some are frequent
  int lookahead = 4;        // batches prepared ahead; 0: just before they are read
  int threads = 1;
  Device device{};
  std::uint32_t admission_count = 1;                   // of the table
  RowCompression refresh_compression{};                // of the table; lossless
  std::size_t dictionary_keys = std::size_t{1} << 20;  // of the table
  std::uint64_t key_formats = 0;                       // see key_format_of()
  int expire_every = 0;  // steps between calls of erase and expire; 0: never. No batch is prepared across a call
  int age = 3;           // argument of expire
  PlacementPolicy placement = PlacementPolicy::kStatic;
  int localize_every = 0;      // steps between calls of localize with random keys; 0: never; as expire_every
  double idle_share = 0.1;     // of (rank, step) pairs that have no batch
  double lookup_share = 0.0;   // of (rank, step) pairs that look rows up between steps
  double barrier_share = 0.0;  // of steps with a barrier during the round
  double reduce_share = 0.0;   // of calls that may start an allreduce (see Sums)
  int check_every = 1;         // steps between checks of the values read; 0: never
};

// One entry of a global batch. It adds (amount, -amount) to the gradient of its row.
struct Use {
  Key key{};
  int amount;  // a whole number; the sum over the batch is divided by `kSamples`
};

inline constexpr int kMicrobatches = 8;
inline constexpr int kSamples = 8;  // of a global batch. Amounts are multiples of it, so that values are whole numbers

// Returns the entries of a microbatch of a step. The result depends on the arguments alone.
std::vector<Use> uses(Workload const& workload, std::int64_t step, int microbatch);
// Returns the keys that the rank of a microbatch erases before a step. The result depends on the arguments alone.
// Several ranks may erase the same key.
std::vector<Key> erased(Workload const& workload, std::int64_t step, int microbatch);
// Returns whether a rank has a batch in a step: false in idle steps, and for a rank without microbatches.
bool takes_part(Workload const& workload, int ranks, std::int64_t step, int rank);

// The expected values of rows before each step, computed with loops and a std::map.
class ReferenceTable {
 public:
  ReferenceTable(Workload const& workload, int ranks) : workload_(workload), ranks_(ranks) {}
  void advance();  // applies the next step
  void erase(std::vector<Key> const& keys);
  std::size_t expire();  // returns what Store::expire() should return
  double value(Key key) const;
  std::size_t rows() const { return values_.size(); }
  std::map<Key, double> const& values() const { return values_; }  // of rows that exist

 private:
  Workload workload_;
  int ranks_;
  std::int64_t step_ = 0;
  std::map<Key, double> values_;
  std::map<Key, std::uint32_t> occurrences_;  // of keys that wait for admission
  std::map<Key, std::int64_t> last_step_;     // of keys with a row and of keys that wait
};

struct Outcome {
  std::uint64_t hash = 0;
  std::uint64_t late_keys = 0;
  std::uint64_t remote_keys = 0;
  std::size_t rows = 0;
  std::uint64_t sums = 0;  // arrays summed over the ranks
};

// Trains on one rank of a group. Throws std::logic_error if a value read is wrong.
Outcome train(Group const& group, Workload const& workload);

// Trains on all ranks and checks the tables at the end. Throws std::logic_error if the table hashes of ranks differ.
Outcome train_all(std::vector<Group> const& group, Workload const& workload);

}  // namespace gpups::test
