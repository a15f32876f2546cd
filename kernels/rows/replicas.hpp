// SPDX-License-Identifier: Apache-2.0
// Which rows are replicas, and until when: a row has a word that is 0 if the row is owned, and otherwise contains the
// last step that uses the replica. Moves 8 bytes per row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpups/array.hpp"
#include "gpups/types.hpp"
#include "kernels/rows/row_storage.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

inline constexpr std::uint32_t kOwned = 0;
inline constexpr std::uint32_t kReplicaBit = std::uint32_t{1} << 31;

// Returns the word of a replica whose last use is in step `clock`.
constexpr std::uint32_t replica_word(Clock clock) {
  return kReplicaBit | (static_cast<std::uint32_t>(number(clock)) & (kReplicaBit - 1));
}

// Returns whether a word is that of a replica that no step after step now - age uses; see TakeReplicas.
GPUPS_FN inline bool is_unused_replica(std::uint32_t word, std::uint32_t now, std::uint32_t age) {
  std::uint32_t const steps = (now - word) & (kReplicaBit - 1);  // since the last use
  return word != kOwned && steps >= age && steps < kReplicaBit / 2;
}

// Makes rows replicas with this word, or owned rows. A replica whose word is of a later step stays as it is.
struct MarkReplicas {
  Rows<std::uint32_t> uses;       // stride 1
  View<std::uint32_t const> ids;  // (n), or kNoRow
  std::uint32_t word;
  bool skip_owned = false;  // owned rows stay owned
};
void mark_replicas(Stream& stream, std::span<MarkReplicas const> lists);
inline void mark_replicas(Stream& stream, MarkReplicas const& list) { mark_replicas(stream, {&list, 1}); }

// Counts replicas by the time since their last use: counts[kReplicaAges * t + replica_age(s)] for s steps. Replicas
// that a later step uses are not counted. counts: (tables, kReplicaAges), zero before the call.
struct CountReplicas {
  Rows<std::uint32_t> uses;
  std::uint32_t rows;  // rows 0 .. rows - 1 are read
  std::uint32_t now;   // the word of a replica whose last use is in the last complete step
};
void count_replicas(Stream& stream, std::span<CountReplicas const> tables, View<std::uint32_t> counts);
// Ages in classes: 0, 1, 2 to 3, 4 to 7, and so on.
inline constexpr std::size_t kReplicaAges = 31;
constexpr std::uint32_t least_steps(std::size_t age) { return age == 0 ? 0 : std::uint32_t{1} << (age - 1); }

// Lists the replicas among rows first .. last - 1 that no step after step now - age uses, ascending, and makes their
// word that of owned rows, which free row numbers have. counts: (tables), how many there are.
struct TakeReplicas {
  Rows<std::uint32_t> uses;
  std::uint32_t rows;         // rows 0 .. rows - 1 are read
  std::uint32_t now;          // the word of a replica whose last use is in the last complete step
  std::uint32_t age;          // in steps, less than 2^30
  View<std::uint32_t> taken;  // (rows)
};
void take_replicas(Stream& stream, std::span<TakeReplicas const> tables, View<std::uint32_t> counts);

}  // namespace gpups::kernels
