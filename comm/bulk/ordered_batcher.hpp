// SPDX-License-Identifier: Apache-2.0
// Puts transfers and sums that go by a fabric into one order over all ranks: a receiver that is ready says so to rank
// 0, and each rank that is for a sum; rank 0 makes batches, and tells each rank its parts of them. So no two ranks wait
// for each other in a circle.
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

class OrderedBatcher {
 public:
  // A part of a batch, as one rank sees it. All ranks take part in a sum: it has no peer.
  enum class Kind : std::uint8_t { kReceive, kSend, kSum };
  struct BatchOperation {
    Kind kind;
    Rank peer;
    std::uint64_t tag;
    bool operator==(BatchOperation const&) const = default;
  };
  // What is moved goes first, then the sums in their order: so they do on all ranks.
  using TransferBatch = std::vector<BatchOperation>;
  // `start` is called by progress() with this rank's parts of a batch, in the order of the batches; `report_peer_error`
  // where a rank has said what cannot be; `wake` when there is something for progress() to do.
  OrderedBatcher(std::shared_ptr<ActiveMessages> ucx, std::function<void(TransferBatch const&)> start,
                 std::function<void(Rank, char const*)> report_peer_error, std::function<void()> wake);
  ~OrderedBatcher();

  // What `from` sends here under `tag` has a place, and both know the same size.
  void ready(Rank from, std::uint64_t tag);
  // This rank can begin the sum of so many elements that has this tag on all ranks.
  void ready_to_allreduce(std::uint64_t tag, std::uint64_t elements);
  void progress();

 private:
  struct Ready {
    Kind kind;  // kSum, or kReceive of what `from` sends `to`
    Rank from, to;
    std::uint64_t tag;
  };
  // A sum that some ranks can begin.
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
  std::map<std::uint64_t, AllreduceReadiness> sums_;  // rank 0: by tag
  std::vector<std::size_t> allreduces_ahead_;         // rank 0: of sums_, those that a rank is ready for, by rank
  std::vector<Ready> ready_;                          // rank 0
  std::vector<std::uint64_t> batches_sent_;           // rank 0: by rank, batches
  std::uint64_t batches_started_ = 0;                 // batches that this rank has begun
  std::map<std::uint64_t, TransferBatch> announced_batches_;  // that it has not; some may have overtaken others
};

}  // namespace gpups::comm
