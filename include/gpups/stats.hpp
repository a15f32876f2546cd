// SPDX-License-Identifier: Apache-2.0
// What a store has done and what it costs: counters of one rank, and the memory it is going to need.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gpups {

// Bytes that this rank has sent to other ranks, by what they were for.
struct Traffic {
  std::uint64_t gradients = 0;   // sums for rows owned elsewhere
  std::uint64_t refreshes = 0;   // values that the next step reads elsewhere
  std::uint64_t intents = 0;     // keys that will be read, announced ahead
  std::uint64_t urgent = 0;      // late keys, and the values that answer them
  std::uint64_t lookups = 0;     // lookup and assign, and their answers
  std::uint64_t reductions = 0;  // arrays of Group::begin_allreduce, and their sums
  std::uint64_t control = 0;     // headers, barriers, sums of wait_sum
  std::uint64_t messages = 0;    // count

  std::uint64_t bytes() const { return gradients + refreshes + intents + urgent + lookups + reductions + control; }
};

struct Stats {
  std::uint64_t steps = 0;          // rounds that are complete
  std::uint64_t entries = 0;        // of all prepared batches
  std::uint64_t distinct_keys = 0;  // of all prepared batches
  std::uint64_t remote_keys = 0;    // of those, owned by another rank
  std::uint64_t urgent_keys = 0;    // of those, announced too late to come with a round
  std::uint64_t rows_reserved =
      0;  // places in this rank's shards, of forgotten rows and those that no step has updated yet too
  std::uint64_t index_growths = 0;  // how often an index began to grow
  double wait_seconds = 0;          // that the training thread spent in wait_ready and wait_flush
  Traffic sent;
};

// One line of the memory plan: what it is for, and its bytes on this rank.
struct MemoryLine {
  std::string what;
  std::uint64_t bytes;
};

}  // namespace gpups
