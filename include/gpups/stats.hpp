// SPDX-License-Identifier: Apache-2.0
// What a store has done and what it costs: counters of one rank, and the memory it is going to need.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gpups {

// A number for each thing that ranks send each other.
struct ByKind {
  std::uint64_t gradients = 0;   // sums for rows owned elsewhere
  std::uint64_t refreshes = 0;   // values that the next step reads elsewhere
  std::uint64_t intents = 0;     // keys that will be read, announced ahead
  std::uint64_t urgent = 0;      // late keys, and the values that answer them
  std::uint64_t lookups = 0;     // lookup and assign, and their answers
  std::uint64_t reductions = 0;  // arrays of Group::begin_allreduce, and their sums
  std::uint64_t control = 0;     // headers, barriers, sums of wait_sum

  std::uint64_t total() const { return gradients + refreshes + intents + urgent + lookups + reductions + control; }
  ByKind& operator+=(ByKind const& other);
};

// What went one way between this rank and another, or all others: bytes, and how many messages they were.
struct Traffic : ByKind {
  ByKind messages;

  std::uint64_t bytes() const { return total(); }
  Traffic& operator+=(Traffic const& other);
};

// Between this rank and one other.
struct PeerTraffic {
  Traffic sent, received;
};

// How long the rounds that end steps took, on the thread that turns the protocol. The four add up to all of it. Where a
// device does the work, this is the time to queue it, and what it is waited for.
struct RoundSeconds {
  double in = 0;       // gradients and intents: gathering, sending, taking
  double apply = 0;    // the update of the rows
  double out = 0;      // refreshes: likewise
  double waiting = 0;  // for other ranks, or for bytes to arrive
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
  RoundSeconds round;
  // Over all peers. `received` may have what was sent after the sender's own counters were read; summed over all ranks
  // both are equal when nothing is under way.
  Traffic sent, received;
  // Bytes that were not sent: as many more would have been if nothing were coded or held back. Then
  //   a number of a row, gradient or value, is a float, and a key is 8 bytes. Rows that a filter holds back are spared
  //   until they are sent late: what that costs is no longer spared;
  //   an integer of Group::begin_allreduce is 8 bytes, and an element of a sparse vector an index and a float, or a
  //   float for each place where that is less;
  //   a sum of a TopKAllreduce is the exact sum of its whole gradient as integers, whatever its algorithm: an element
  //   that waits is spared in each sum that it waits in, since each would have sent it.
  // A message that is longer than that, as a short one's header can make it, spares nothing.
  ByKind spared;
  std::vector<PeerTraffic> peers;  // by rank; nothing for this rank itself

  // Bytes sent and spared for each that was sent, headers and all; 1 where nothing was.
  double compression() const;
};

// One line of the memory plan: what it is for, and its bytes on this rank.
struct MemoryLine {
  std::string what;
  std::uint64_t bytes;
};

}  // namespace gpups
