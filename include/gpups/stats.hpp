// SPDX-License-Identifier: Apache-2.0
// Counters of one rank, and lines of the memory plan.
//
//   Stats const stats = store.stats();
//   std::printf("%llu steps, %llu bytes sent, compressed by %.2f\n", (unsigned long long)stats.steps,
//               (unsigned long long)stats.sent.bytes(), stats.compression_ratio());
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpups/compiler.hpp"

namespace gpups {

// One number, bytes or messages, for each kind of traffic between ranks.
struct TrafficByKind {
  std::uint64_t gradients = 0;     // sums of gradients, to the owners of the rows
  std::uint64_t refreshes = 0;     // values, from the owners to the ranks that read them in the next step
  std::uint64_t intents = 0;       // keys of prepared batches, to the owners
  std::uint64_t late_fetches = 0;  // keys of batches that were prepared too late for a round, and their values
  std::uint64_t moves = 0;         // rows that move to other ranks while training
  std::uint64_t lookups = 0;       // requests and replies of lookup, assign and erase
  std::uint64_t allreduces = 0;    // data of allreduce and reduce-scatter
  std::uint64_t control = 0;       // message headers, barriers, gathers and sums of the Store

  std::uint64_t total() const {
    return gradients + refreshes + intents + late_fetches + moves + lookups + allreduces + control;
  }
  GPUPS_EXPORT TrafficByKind& operator+=(TrafficByKind const& other);
};

// Traffic in one direction between this rank and one other rank, or all others. The numbers of the base class are
// bytes.
struct Traffic : TrafficByKind {
  TrafficByKind messages;  // numbers of messages

  std::uint64_t bytes() const { return total(); }
  GPUPS_EXPORT Traffic& operator+=(Traffic const& other);
};

// Traffic between this rank and one other rank, in both directions.
struct PeerTraffic {
  Traffic sent, received;
};

// Seconds spent in rounds, on the thread that makes progress. The four numbers add up to the duration of all rounds.
// Work on a GPU counts with the time to queue it and the time spent waiting for it.
struct RoundSeconds {
  double gradients = 0;  // gathering, sending and receiving gradients and intents
  double update = 0;     // updating rows
  double refreshes = 0;  // gathering, sending and receiving refreshes
  double waiting = 0;    // waiting for other ranks, or for data to arrive
};

// Counters of one rank; see Store::stats(). Traffic includes that of the group's collectives.
struct Stats {
  std::uint64_t steps = 0;          // completed rounds
  std::uint64_t entries = 0;        // entries of all prepared batches
  std::uint64_t distinct_keys = 0;  // distinct keys of all prepared batches
  // Of the distinct keys that were announced, those whose rows another rank owns. With StoreOptions::staleness also
  // keys that are announced only because gradients have waited.
  std::uint64_t remote_keys = 0;
  // Of the distinct keys, those whose home is another rank: remote_keys, if all rows were at their homes.
  std::uint64_t remote_home_keys = 0;
  std::uint64_t late_keys = 0;  // of the remote keys, those that were fetched late
  // If rows move: batches that were prepared less than StoreOptions::placement_window + 1 steps ahead, but for those of
  // the first steps. The owners of rows depend on when they were announced.
  std::uint64_t late_batches = 0;
  // With StoreOptions::staleness: of the distinct keys, those that were not announced, because this rank had a copy of
  // the row; the sum of the ages of these copies, in steps; and the largest age. Rows that this rank owned in the step
  // count, too, although they are not old.
  std::uint64_t leased_keys = 0, leased_steps = 0, leased_steps_max = 0;
  std::uint64_t moved_rows = 0;  // rows that this rank has passed to other ranks while training
  // Row slots in this rank's shards, including those of erased rows, of rows that no step has updated yet, and of
  // replicas of rows that other ranks own.
  std::uint64_t rows_reserved = 0;
  // Rows of these that this rank owns, including rows that no step has updated yet.
  std::uint64_t owned_rows = 0;
  std::uint64_t index_growths = 0;  // how often a table's index started to grow
  double wait_seconds = 0;          // seconds that the training thread spent in wait_ready and wait_applied
  RoundSeconds round;
  // The work of the store's streams so far: those of make_stream(), and the library's own. Launches are those of
  // kernels or, on the host, calls of functions that run in parallel.
  std::uint64_t launches = 0;
  std::uint64_t stream_waits = 0;  // waits for a stream, or for a result of its work; they return at once on the host
  std::uint64_t host_copies = 0;   // copies between host memory and GPU memory
  std::uint64_t host_copied_bytes = 0;  // by these copies
  // Totals over all other ranks. When no message is in flight, the sums of `sent` and `received` over all ranks are
  // equal.
  Traffic sent, received;
  // Bytes that codecs, filters, dictionaries and sparsification saved: the bytes without compression minus the sent
  // bytes. A message that is longer than without compression saves nothing. The bytes without compression are:
  // - for rows, 4 bytes per number and 8 bytes per key, for all rows of all batches. A row that a filter delays counts
  //   as saved; when it is sent later, its bytes are subtracted.
  // - for an allreduce, 8 bytes per integer. For a sparse vector, the smaller one of 8 bytes per listed element (index
  //   and float) and 4 bytes per element of the whole vector.
  // - for a TopKAllreduce, those of an exact allreduce of the whole gradient as integers, in every step.
  TrafficByKind saved_bytes;
  std::vector<PeerTraffic> peers;  // (ranks), by rank; zero for this rank

  // Returns (bytes sent + bytes saved) / bytes sent, headers included; 1 if nothing was sent.
  GPUPS_EXPORT double compression_ratio() const;
};

// One line of Store::memory_plan(): a description, and bytes on this rank.
struct MemoryPlanLine {
  std::string what;
  std::uint64_t bytes;
};

}  // namespace gpups
