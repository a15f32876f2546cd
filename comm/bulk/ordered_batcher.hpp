// SPDX-License-Identifier: Apache-2.0
// Puts the transfers and sums of a device fabric into one order on all ranks. A receiver that is ready sends that to
// rank 0, and so does each rank that is ready for a sum. Rank 0 makes batches, and sends to each rank its operations in
// them. So no two ranks wait for each other in a circle.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "comm/ucx/active_messages.hpp"

namespace gpups::comm {

// One on each rank. All functions are called with the lock of ActiveMessages held.
class OrderedBatcher {
 public:
  // An operation of a batch, as one rank sees it. kSum has no peer, since all ranks take part.
  enum class Kind : std::uint8_t { kReceive, kSend, kSum };
  struct BatchOperation {
    Kind kind;
    Rank peer;
    std::uint64_t tag;
    bool operator==(BatchOperation const&) const = default;
  };
  // The transfers of a batch start before its sums, on all ranks.
  using TransferBatch = std::vector<BatchOperation>;
  // start: called by progress() with the operations of this rank, in the order of the batches. report_peer_error:
  // called with a rank that has sent an invalid message, and why. wake: called when progress() has work to do.
  OrderedBatcher(std::shared_ptr<ActiveMessages> ucx, std::function<void(TransferBatch const&)> start,
                 std::function<void(Rank, char const*)> report_peer_error, std::function<void()> wake);
  ~OrderedBatcher();

  // This rank, the receiver, is ready for the transfer with this tag from `from`: it has memory, and the sizes agree.
  void ready(Rank from, std::uint64_t tag);
  // This rank is ready for the allreduce with this tag.
  void ready_to_allreduce(std::uint64_t tag, std::uint64_t elements);
  // Sends batches (rank 0) and starts those that have arrived.
  void progress();

 private:
  struct Ready {
    Kind kind;  // kSum, or kReceive: a transfer from `from` to `to`
    Rank from, to;
    std::uint64_t tag;
  };
  // An allreduce that some ranks are ready for.
  struct AllreduceReadiness {
    std::uint64_t elements;
    std::set<Rank> ranks;
  };
  void on_ready(AmHeader const& header);
  void on_allreduce_ready(AmHeader const& header);
  void add_to_allreduce(Rank rank, std::uint64_t tag, std::uint64_t elements);
  std::size_t fill_batches(std::map<Rank, TransferBatch>& batches) const;
  void on_batch(AmHeader const& header, std::string_view body);
  void send_batches();

  std::shared_ptr<ActiveMessages> const ucx_;
  std::function<void(TransferBatch const&)> const start_;
  std::function<void(Rank, char const*)> const report_peer_error_;
  std::function<void()> const wake_;
  std::map<std::uint64_t, AllreduceReadiness> sums_;          // rank 0: by tag
  std::vector<std::size_t> allreduces_ahead_;                 // rank 0: by rank, how many of sums_ it is ready for
  std::vector<Ready> ready_;                                  // rank 0
  std::vector<std::uint64_t> batches_sent_;                   // rank 0: by rank
  std::uint64_t batches_started_ = 0;                         // on this rank
  std::map<std::uint64_t, TransferBatch> announced_batches_;  // not started on this rank, perhaps out of order
};

}  // namespace gpups::comm
