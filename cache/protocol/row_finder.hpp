// SPDX-License-Identifier: Apache-2.0
// Finds the rows of other ranks' batches in this rank's shards, just before they are read or updated.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "cache/protocol/round_state.hpp"

namespace gpups::cache {

// For the thread that makes progress. Functions with `wait` in their names block until the stream is done. Throws
// PeerError for a batch that has a key twice.
class RowFinder {
 public:
  // `state` must outlive this object.
  explicit RowFinder(RoundState& state) : state_(state) {}

  // Finds or reserves the rows that this rank sends or passes to other ranks for the step after `step`, and those for
  // which it has received gradients of `step`. also: see TableShard::wait_resolve().
  void wait_find(Clock step, kernels::HostReads& also);
  // Reads whether a key was repeated, for check_found(). Queued on the stream.
  void read_repeated(kernels::HostReads& reads);
  // Throws PeerError if a list that was found has a key twice. REQUIRES: the reads are done.
  void check_found();

  // Finds or reserves the rows that this rank sends for a late fetch.
  std::vector<ListPart> wait_find_late(Rank reader, HomeList const& list);

 private:
  // A list of rows to be found: the keys of all homes, for a part of a reader's batch. They are joined in ascending
  // order.
  struct JoinedKeys {
    Rank reader{};
    ListPart* part = nullptr;
    std::vector<View<Key const>> pieces;
    std::size_t keys = 0;
  };
  using HomeKeys = std::vector<std::vector<ListKeys> const*>;  // of all homes
  void add(Rank reader, HomeKeys const& homes, std::vector<ListPart>& parts);
  void add_updates(Rank reader, ReaderBatch& batch);
  void merge_pieces(std::map<TableId, std::vector<JoinedKeys const*>> const& by_table);
  void wait_find_added(kernels::HostReads& also);

  RoundState& state_;
  std::vector<JoinedKeys> added_;
  std::vector<TableShard::ShardLists> found_;
  std::shared_ptr<Array<Key>> keys_;        // of found_
  std::vector<std::vector<Rank>> readers_;  // by table in found_: of each list
  Array<std::uint32_t> repeated_there_;
  std::vector<std::uint32_t> repeated_;
};

}  // namespace gpups::cache
