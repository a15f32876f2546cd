// SPDX-License-Identifier: Apache-2.0
// Finds the rows of other ranks' batches in this rank's shards, just before they are read or updated.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "cache/protocol/round/round_state.hpp"
#include "kernels/placement/home_lists.hpp"

namespace gpups::cache {

// For the thread that makes progress. Functions with `wait` in their names block until the stream is done. Throws
// PeerError for a batch that has a key twice, and for keys that another rank than their home has forwarded.
class RowFinder {
 public:
  // `state` must outlive this object.
  explicit RowFinder(RoundState& state) : state_(state) {}

  // Finds or reserves the rows that this rank sends or passes to other ranks for the step after `step`, and those for
  // which it has received gradients of `step`. also: see TableShard::wait_resolve_lists().
  void wait_find(Clock step, kernels::HostReads& also);
  // Reads whether a key was repeated, or forwarded by a rank that is not its home, for check_found(). Queued on the
  // stream.
  void read_wrong(kernels::HostReads& reads);
  // Throws PeerError if a list that was found has such a key. REQUIRES: the reads are done.
  void check_found();

  // Finds or reserves the rows that this rank sends for a late fetch, for one home.
  std::vector<ListPart> wait_find_late(ReaderBatchId const& of, Rank home);

 private:
  // A list of rows to be found: the keys of all homes, for a part of a reader's batch. They are joined in ascending
  // order.
  struct JoinedKeys {
    Rank reader{};
    ListPart* part = nullptr;
    std::vector<View<Key const>> pieces;
    std::size_t keys = 0;
  };
  void add(Rank reader, std::vector<View<Key const>> pieces, ListPart& part);
  void add(Rank reader, ReaderBatch const& batch, std::span<RowRole const> roles, std::vector<ListPart>& parts);
  void add_updates(Rank reader, ReaderBatch& batch);
  void merge_pieces(std::map<TableId, std::vector<JoinedKeys const*>> const& by_table);
  void wait_find_added(kernels::HostReads& also);
  void add_forwarded(Clock clock);

  RoundState& state_;
  std::vector<JoinedKeys> added_;
  std::vector<TableShard::ShardLists> found_;
  std::shared_ptr<Array<Key>> keys_;        // of found_
  std::vector<std::vector<Rank>> readers_;  // by table in found_: of each list
  Array<std::uint32_t> repeated_there_;
  std::vector<std::uint32_t> repeated_;
  std::vector<kernels::KeysOfHome> forwarded_;  // whose homes are checked
  Array<std::uint32_t> foreign_there_;
  std::vector<std::uint32_t> foreign_;
};

}  // namespace gpups::cache
