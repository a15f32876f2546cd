// SPDX-License-Identifier: Apache-2.0
// Counters of one rank: steps, keys, traffic by kind and by peer, time of rounds; and lines of the memory plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gpups {

// One number for each kind of traffic between ranks.
struct TrafficByKind {
  std::uint64_t gradients = 0;     // sums of gradients, to the owners of the rows
  std::uint64_t refreshes = 0;     // values, from the owners to the ranks that read them in the next step
  std::uint64_t intents = 0;       // keys of prepared batches, to the owners
  std::uint64_t late_fetches = 0;  // keys that were prepared too late for a round, and their values
  std::uint64_t lookups = 0;       // requests and replies of lookup, assign and erase
  std::uint64_t allreduces = 0;    // data of allreduce and reduce-scatter
  std::uint64_t control = 0;       // message headers, barriers, gathers and sums of the Store

  std::uint64_t total() const {
    return gradients + refreshes + intents + late_fetches + lookups + allreduces + control;
  }
  TrafficByKind& operator+=(TrafficByKind const& other);
};

// Traffic in one direction between this rank and another rank, or all others: bytes and number of messages.
struct Traffic : TrafficByKind {
  TrafficByKind messages;

  std::uint64_t bytes() const { return total(); }
  Traffic& operator+=(Traffic const& other);
};

// Traffic between this rank and one other rank.
struct PeerTraffic {
  Traffic sent, received;
};

// Seconds spent in the rounds that end steps, on the thread that makes progress. The four add up to the duration of the
// rounds. Work on a GPU counts with the time to queue it and the time spent waiting for it.
struct RoundSeconds {
  double gradients = 0;  // gathering, sending and receiving gradients and intents
  double update = 0;     // updating rows
  double refreshes = 0;  // gathering, sending and receiving refreshes
  double waiting = 0;    // waiting for other ranks, or for data to arrive
};

struct Stats {
  std::uint64_t steps = 0;          // completed rounds
  std::uint64_t entries = 0;        // entries of all prepared batches
  std::uint64_t distinct_keys = 0;  // distinct keys of all prepared batches
  std::uint64_t remote_keys = 0;    // of these, keys whose rows another rank owns
  std::uint64_t late_keys = 0;      // of these, keys that were prepared too late for a round
  // Row slots in this rank's shards, including those of erased rows and of rows that no step has updated yet.
  std::uint64_t rows_reserved = 0;
  std::uint64_t index_growths = 0;  // times that an index started to grow
  double wait_seconds = 0;          // seconds that the training thread spent in wait_ready and wait_applied
  RoundSeconds round;
  // Totals over all peers. `received` may include messages that the sender counted after its own counters were read.
  // Summed over all ranks, sent and received are equal when no message is in flight.
  Traffic sent, received;
  // Bytes that codecs, filters and sparsification saved. The bytes sent are compared with:
  //   rows: 4 bytes per number and 8 bytes per key, for all rows of the batches. A row that a filter delays counts as
  //   saved until it is sent; its cost is then subtracted;
  //   allreduce: 8 bytes per integer; for a sparse vector the smaller of 8 bytes per element (index and float) and 4
  //   bytes per position;
  //   TopKAllreduce: an exact allreduce of the whole gradient as integers, in every step.
  // A message that is longer than its comparison saves nothing.
  TrafficByKind saved_bytes;
  std::vector<PeerTraffic> peers;  // by rank; zero for this rank

  // Returns (bytes sent + bytes saved) / bytes sent, headers included; 1 if nothing was sent.
  double compression_ratio() const;
};

// One line of the memory plan: a description, and bytes on this rank.
struct MemoryPlanLine {
  std::string what;
  std::uint64_t bytes;
};

}  // namespace gpups
