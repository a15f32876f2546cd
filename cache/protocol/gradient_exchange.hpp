// SPDX-License-Identifier: Apache-2.0
// The gradients of a step: sends those of this rank's batch to the owners of its rows, and receives those of other
// ranks' batches for the rows of this rank.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "cache/protocol/residual_exchange.hpp"
#include "cache/protocol/round_state.hpp"

namespace gpups::cache {

// For the thread that makes progress. Functions with `wait` in their names block until the stream is done. Throws
// PeerError for invalid gradients of peers.
class GradientExchange {
 public:
  // Both references must outlive this object.
  GradientExchange(RoundState& state, ResidualExchange& residuals) : state_(state), residuals_(residuals) {}

  // Encodes the gradients of the current batch for an owner. Returns the sizes of the sections, for the header; the
  // functions that are added to `sends` send the sections, after the header.
  std::vector<GradientBytes> wait_send(Rank owner, std::vector<std::function<void()>>& sends);

  // Throws PeerError if a rank has not announced the rows of these gradients, or their keys have not arrived, or if the
  // sizes are impossible. Allocates no memory for the gradients.
  void check(Rank from, std::vector<GradientBytes> const& sizes);
  // Returns how often receive() calls `taken`.
  std::size_t sections(Rank from, std::vector<GradientBytes> const& sizes) const;
  // Receives the gradients of a rank. Calls `taken` when a section has arrived.
  void receive(Rank from, std::vector<GradientBytes> const& sizes, std::function<void()> const& taken);

  // Adds the gradients of all ranks for rows of a table to `lists`. They are valid until end_step().
  void wait_append(TableId table, std::vector<RowSums>& lists);
  void end_step() { local_.clear(); }

 private:
  // Gradients of this rank's batch for rows that it owns, of which some are away from their homes.
  struct LocalSums {
    Array<std::uint32_t> ids;
    Matrix<std::int64_t> sums;
    Array<std::int64_t> counts;
  };
  RowSums wait_local_sums(PreparedPart& part);
  void receive_part(ReaderBatchId const& of, std::size_t part, GradientBytes const& sizes,
                    std::function<void()> const& taken);
  void receive_sums(Rank from, std::uint64_t tag, std::shared_ptr<ReceivedSums> const& sums, std::uint64_t bytes,
                    std::function<void()> then);
  void receive_compressed(Rank from, ReaderPart& part, std::uint64_t tag, GradientBytes const& sizes,
                          std::function<void()> const& taken);
  void wait_unpack_counts(ReaderPart& part);
  RowSums wait_decode(Rank from, ReaderPart& part);

  RoundState& state_;
  ResidualExchange& residuals_;
  std::deque<LocalSums> local_;
};

}  // namespace gpups::cache
