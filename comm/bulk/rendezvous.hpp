// SPDX-License-Identifier: Apache-2.0
// Rendezvous transfers between devices: the sender announces a transfer, and the receiver, when it has memory for it,
// chooses how the data travel: by the device fabric, directly if UCX reaches both devices, or in pieces through
// staging. Also runs allreduces on the fabric.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "comm/bulk/device_fabric.hpp"
#include "comm/bulk/ordered_batcher.hpp"
#include "comm/ucx/active_messages.hpp"
#include "gpups/array.hpp"
#include "gpups/stream.hpp"
#include "kernels/runtime/host_memory.hpp"

namespace gpups::comm {

// Large data are staged in pieces of so many bytes, and at most so many at a time in each direction.
inline constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
inline constexpr std::size_t kPiecesMax = 4;

// Buffers of one size. They are allocated when they are first needed, and kept.
class Staging {
 public:
  explicit Staging(std::size_t bytes, std::size_t buffers_max = ~std::size_t{0})
      : bytes_(bytes), buffers_max_(buffers_max) {}

  // Returns a buffer for data of the device; null if all are in use. Throws Error if there is no memory.
  kernels::PinnedPtr take(Device device) {
    if (!free_.empty()) {
      auto buffer = std::move(free_.back());
      free_.pop_back();
      return buffer;
    }
    if (allocated_ == buffers_max_) return nullptr;
    auto buffer = kernels::allocate_pinned(device, bytes_);
    ++allocated_;
    return buffer;
  }
  void give_back(kernels::PinnedPtr buffer) { free_.push_back(std::move(buffer)); }

 private:
  std::size_t const bytes_, buffers_max_;
  std::vector<kernels::PinnedPtr> free_;
  std::size_t allocated_ = 0;
};

// One on each rank. All functions are called with the lock of ActiveMessages held.
class RendezvousTransfers {
 public:
  using Id = std::pair<Rank, std::uint64_t>;  // the other rank, and the tag
  using OnDone = std::function<void()>;
  // report_peer_error: called with a rank that has sent an invalid message, and why. wake: called when progress() has
  // work to do.
  RendezvousTransfers(std::shared_ptr<ActiveMessages> ucx, std::shared_ptr<DeviceFabric> fabric,
                      std::function<void(Rank, char const*)> report_peer_error, std::function<void()> wake);
  ~RendezvousTransfers();

  // Returns whether a transfer of so many bytes from the device is sent here.
  bool handles(Device device, std::size_t bytes) const;
  // Announces a transfer. `on_sent` is called when the data may change.
  void send(Id const& id, void const* data, std::size_t bytes, Stream const& stream, OnDone on_sent);
  // Receives an announced transfer to `data`, on the device of the stream. `on_received` is called when it has arrived.
  // offers_fabric: whether the announcement offers the fabric.
  void receive(Id const& id, bool offers_fabric, void* data, std::size_t bytes, Stream const& stream,
               OnDone on_received);

  // Returns whether the fabric connects the device.
  bool has_fabric(Device device) const { return fabric_ && fabric_->device() == device; }
  // Returns whether this rank puts the operations of the fabric of all ranks into one order, see OrderedBatcher.
  bool orders_transfers() const { return fabric_ && ucx_->rank() == Rank{0}; }
  // Starts an allreduce on the fabric, with a tag that is equal on all ranks, once the work queued on the stream so far
  // is done. `on_received` is called when the sums are complete. REQUIRES: has_fabric(stream.device()).
  void sum(std::uint64_t tag, FabricSum const& arrays, Stream& stream, OnDone on_received);

  // Does what is possible without blocking. Returns true if anything was done, or while a device copies, since the end
  // of a copy wakes no thread. Throws Error if the fabric has failed, and if staging memory cannot be allocated.
  bool progress();
  // Returns whether memory of this rank may still be read or written by transfers.
  bool busy() const { return open_ > 0 || !copies_.empty() || !batches_.empty(); }

 private:
  struct OutgoingTransfer {
    char const* data;
    std::size_t bytes, next = 0, sent_bytes = 0;  // next: offset of the first byte that has not been sent
    Stream stream;
    OnDone on_sent;
    bool on_request = false, by_fabric = false;
  };
  struct IncomingTransfer {
    char* data;
    std::size_t bytes, requested_bytes = 0, received_bytes = 0;
    Stream stream;
    OnDone on_received;
    bool by_fabric = false;
  };
  // A copy between staging memory and a device.
  struct StagedCopy {
    Event done;
    std::function<void()> on_done;
  };
  struct RunningBatch {
    DeviceFabric::IsDone done;
    std::vector<OnDone> on_done;
  };
  struct PendingAllreduce {
    FabricSum arrays;
    Event written;  // when the terms are written
    OnDone on_received;
  };
  struct ReceivedPiece {
    Id id;
    std::size_t offset;
    AmArrival arrival;
  };

  template <class F>
  OnDone guarded(F on_done);
  void on_request(AmHeader const& header);
  void stage_sends();
  void send_piece(AmProtocol protocol, Id const& id, void const* data, std::size_t offset, std::size_t bytes,
                  OnDone sent);
  void on_piece(AmHeader const& header, AmArrival const& arrival);
  void stage_receives();
  void receive_staged(ReceivedPiece const& piece, kernels::PinnedPtr buffer);
  bool is_direct(IncomingTransfer const& mine, AmArrival const& arrival) const;
  void count_sent(Id const& id, std::size_t bytes);
  void on_received(Id const& id, std::size_t bytes);
  bool announce_ready_sums();
  bool end_batches();
  void start_batch(OrderedBatcher::TransferBatch const& batch);
  bool add_operation(OrderedBatcher::BatchOperation const& operation, std::vector<DeviceFabric::P2pOp>& operations,
                     std::vector<OnDone>& on_done);
  bool start_allreduce(std::uint64_t tag);

  std::shared_ptr<ActiveMessages> const ucx_;
  std::shared_ptr<DeviceFabric> const fabric_;
  std::function<void(Rank, char const*)> const report_peer_error_;
  std::function<void()> const wake_;
  std::shared_ptr<bool> const alive_ = std::make_shared<bool>(true);
  std::map<Id, OutgoingTransfer> outgoing_;
  std::map<Id, IncomingTransfer> incoming_;
  std::map<std::uint64_t, PendingAllreduce> pending_allreduces_;  // by tag: not started yet
  std::vector<std::uint64_t> unready_allreduces_;                 // those whose terms are not written yet
  Staging sending_{kPieceBytes, kPiecesMax}, receiving_{kPieceBytes, kPiecesMax};
  std::deque<Id> unstaged_sends_;                // have pieces to send, and wait for staging memory
  std::deque<ReceivedPiece> waiting_pieces_;     // have arrived, and wait for staging memory
  std::vector<std::function<void()>> deferred_;  // work that may throw, which callbacks of UCX must not
  std::vector<StagedCopy> copies_;
  std::vector<RunningBatch> batches_;
  std::size_t open_ = 0;  // pending operations of UCX
  std::unique_ptr<OrderedBatcher> batcher_;
};

}  // namespace gpups::comm
