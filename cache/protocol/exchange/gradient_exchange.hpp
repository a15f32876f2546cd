// SPDX-License-Identifier: Apache-2.0
// The gradients of a step: sends those of this rank's batch to the owners of its rows, and receives those of other
// ranks' batches for the rows of this rank.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "cache/protocol/exchange/residual_exchange.hpp"
#include "cache/protocol/round/round_state.hpp"

namespace gpups::cache {

// For the thread that makes progress. Functions with `wait` in their names block until the stream is done. Throws
// PeerError for invalid gradients of peers.
class GradientExchange {
 public:
  // Both references must outlive this object.
  GradientExchange(RoundState& state, ResidualExchange& residuals) : state_(state), residuals_(residuals) {}

  // Packs the gradients of the current batch for all owners, but for tables with gradient compression. Queued on the
  // stream. reads: the host reads their sizes with these.
  void pack(kernels::HostReads& reads);
  // Returns the sizes of the sections for an owner, for the header; the functions that are added to `sends` send the
  // sections, after the header. Encodes gradients of tables with gradient compression. REQUIRES: the reads of pack()
  // are done.
  std::vector<GradientBytes> wait_send(Rank owner, std::vector<std::function<void()>>& sends);

  // Throws PeerError if a rank has not announced the rows of these gradients, or their keys have not arrived, or if the
  // sizes are impossible. Allocates no memory for the gradients.
  void check(Rank from, std::vector<GradientBytes> const& sizes);
  // Returns how often receive() calls `taken`.
  std::size_t transfers(Rank from, std::vector<GradientBytes> const& sizes) const;
  // Receives the gradients of a rank. Calls `taken` when data have arrived.
  void receive(Rank from, std::vector<GradientBytes> const& sizes, std::function<void()> const& taken);

  // Finds the rows in the gradients that have arrived. Queued on the stream. reads: of what check_found() checks.
  void find(kernels::HostReads& reads);
  // Throws PeerError if gradients do not fill their bytes. REQUIRES: the reads of find() are done.
  void check_found();
  // Adds the gradients of all ranks for rows of a table to `lists`. They are valid until end_step().
  void wait_append(TableId table, std::vector<RowSums>& lists);
  void end_step();

 private:
  // Rows of this rank's batch that it owns, of which some are away from their homes.
  struct LocalRows {
    Array<std::uint32_t> ids;
    Array<std::int64_t> counts;
  };
  // Packed gradients. Section k is for an owner and a part; an owner's sections follow each other, with the sums of a
  // part before its occurrence counts.
  struct PackedGradients {
    struct PackedSection {
      Rank owner;
      std::size_t part;
      bool is_counts;
    };
    kernels::PackedParts bytes;
    std::vector<std::uint64_t> places;
    std::vector<PackedSection> sections;
  };
  View<std::uint32_t const> ascending(std::size_t n);
  void find_local();
  RowSums local_sums(PreparedPart const& part) const;
  void receive_body(Rank from, std::vector<GradientBytes> const& sizes, std::function<void()> const& taken);
  void receive_compressed(Rank from, UpdatedPart& part, std::uint64_t tag, GradientBytes const& sizes,
                          std::function<void()> const& taken);
  RowSums wait_decode(Rank from, UpdatedPart& part);
  // Calls f(part, sizes) for each plain section of a body, in order, with the shape of its rows.
  template <class F>
  void each_section(ReaderBatch& list, std::vector<GradientBytes> const& sizes, F f);

  RoundState& state_;
  ResidualExchange& residuals_;
  std::map<PreparedPart const*, LocalRows> local_;
  std::shared_ptr<PackedGradients> packed_;
  Array<std::uint32_t> ascending_;    // 0, 1, 2 ...
  Array<std::uint64_t> starts_;       // ReceivedSums::starts of the step
  Array<std::uint32_t> wrong_there_;  // of find()
  std::vector<std::uint32_t> wrong_;  // read from it
  std::vector<Rank> senders_;         // of the sections that find() checks
};

}  // namespace gpups::cache
