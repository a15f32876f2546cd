// SPDX-License-Identifier: Apache-2.0
// Computes what ranks would send with the protocol of HET (Miao et al., "HET: Scaling out Huge Embedding Model Training
// via Cache-enabled Distributed Framework", VLDB 2022, section 3), for comparison with placement policies. The rows of
// a home are at this rank and never move, and every rank has a cache for rows of other homes.
//
//   HetReplay replay({.ranks = 4, .read_bound = 10, .write_bound = 10, .tables = {{bytes, lines_max}}});
//   for each step: replay.announce(rank, table, keys) for each rank; replay.advance();
//
// A row has a version: the number of updates that its home has applied. A rank reads the row of another home by sending
// the key and the version of its copy. The home sends the value if there is no copy, or if the row has had more than
// read_bound updates since then. The copy gets the rank's own updates at once. When more than write_bound of them wait,
// or when the copy is evicted, the rank pushes their sum with their number, which the home adds to the version.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "cache/placement/het/het_cache.hpp"
#include "cache/placement/policy.hpp"
#include "cache/placement/replay.hpp"

namespace gpups::cache {

struct HetStep {
  // A row that is sent, between its home and a rank.
  struct SentRow {
    std::uint32_t table = 0;
    Rank rank{};
    Key key{};
    std::uint64_t updates = 0;  // whose sum is pushed; 0 if the value is fetched
  };

  // No row moves. `leased` are the keys that are read from a cache as they are, `reads` the other rows of other homes,
  // and `key_bytes` a key and a version with each of both, with each value, and a key and a number with each push.
  ReplayedStep sent;
  // What ranks would send without caches: a value, a gradient and two keys of 8 bytes for each use of another home's
  // row.
  double plain_bytes = 0;
  std::vector<SentRow> fetched, pushed;
};

class HetReplay {
 public:
  struct CachedTable {
    RowBytes bytes{};
    std::size_t lines_max = 1;  // of each rank's cache
  };
  struct HetOptions {
    Eviction eviction = Eviction::kLru;
    int ranks = 0;
    int ranks_of_node = 1;
    std::uint64_t read_bound = 0, write_bound = 0;  // in updates of a row
    std::vector<CachedTable> tables{};
  };
  explicit HetReplay(HetOptions options);

  // Adds the rows of a table that a rank's batch uses in the next step. If several parts of a batch use a row, it
  // counts once, and so does its update.
  void announce(Rank reader, std::size_t table, std::span<Key const> keys);
  // Replays the next step. All ranks read rows as they were after the previous step, in the order of a hash of their
  // keys; then all ranks update them, and push what is due. Rows that are evicted while ranks read are pushed with the
  // updates. A row without a line is pushed at once.
  HetStep advance();

  // Returns the number of rows of each rank's homes that were used.
  std::vector<std::uint64_t> rows_owned(std::size_t table) const;
  HetCache const& cache_of(Rank rank, std::size_t table) const { return tables_[table].caches[number(rank)]; }

 private:
  struct VersionedTable {
    std::unordered_map<Key, std::uint64_t> versions;
    std::vector<HetCache> caches;                         // by rank, as the next ones
    std::vector<std::vector<Key>> batches;                // of the next step
    std::vector<std::map<Key, std::uint64_t>> evictions;  // updates of lines that were evicted in this step
  };

  Rank home_of(Key key) const;
  void read(std::uint32_t table, Rank rank, HetStep& step);
  void update(std::uint32_t table, Rank rank, HetStep& step);
  void count(HetStep& step) const;

  HetOptions options_;
  std::vector<VersionedTable> tables_;
};

}  // namespace gpups::cache
