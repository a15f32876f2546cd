// SPDX-License-Identifier: Apache-2.0
// Transfers from memory of a device: their sender only names them, and the receiver, when it has a place for one, says
// how it goes: by a fabric, straight from memory to memory where UCX reaches the device, or in pieces through host
// memory of a bounded size. And sums by the fabric.
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
#include "comm/bulk/staging.hpp"
#include "comm/ucx/active_messages.hpp"
#include "gpups/array.hpp"
#include "gpups/stream.hpp"

namespace gpups::comm {

// Its calls come with the link's lock held.
class RendezvousTransfers {
 public:
  using Id = std::pair<Rank, std::uint64_t>;  // the other rank, and the tag
  using OnDone = std::function<void()>;
  // `report_peer_error` where a rank says what cannot be; `wake` when there is something for progress() to do.
  RendezvousTransfers(std::shared_ptr<ActiveMessages> ucx, std::shared_ptr<DeviceFabric> fabric,
                      std::function<void(Rank, char const*)> report_peer_error, std::function<void()> wake);
  ~RendezvousTransfers();

  // Whether so many bytes on the device are sent in this way.
  bool handles(Device device, std::size_t bytes) const;
  // Names a transfer of data that are there. `sent_bytes_gone` is called when they are no longer needed.
  void send(Id const& id, void const* data, std::size_t bytes, Stream const& stream, OnDone sent_bytes_gone);
  // There is a place for what the other rank has named: `data`, on the stream's device. `on_received` is called when it
  // has come. offers_fabric: what the other rank has said.
  void receive(Id const& id, bool offers_fabric, void* data, std::size_t bytes, Stream const& stream,
               OnDone on_received);

  // Whether a fabric connects the device.
  bool has_fabric(Device device) const { return fabric_ && fabric_->device() == device; }
  // A sum over all ranks by the fabric, under a tag that is the same on all of them: of what the work queued on the
  // stream so far has written to `terms`. `on_received` is called when the sums have come. REQUIRES:
  // has_fabric(stream.device()).
  void sum(std::uint64_t tag, View<float const> terms, View<float> sums, Stream& stream, OnDone on_received);

  // Does what has become possible. True while something is being copied by a device, which wakes nobody, or was done.
  // Throws Error where a fabric has failed, and where there is no memory to stage what is sent.
  bool progress();
  // Somebody may be reading from memory of this rank, or writing to it.
  bool busy() const { return open_ > 0 || !copies_.empty() || !batches_.empty(); }

 private:
  struct OutgoingTransfer {
    char const* data;
    std::size_t bytes, next = 0, gone_bytes = 0;  // next: the first byte of which nothing is under way
    Stream stream;
    OnDone sent_bytes_gone;
    bool on_request = false, by_fabric = false;
  };
  struct IncomingTransfer {
    char* data;
    std::size_t bytes, asked = 0, there_bytes = 0;
    Stream stream;
    OnDone on_received;
    bool by_fabric = false;
  };
  // Between a piece of host memory and a device.
  struct StagedCopy {
    Event done;
    std::function<void()> on_done;
  };
  struct RunningBatch {
    DeviceFabric::IsDone done;
    std::vector<OnDone> on_done;
  };
  struct PendingAllreduce {
    View<float const> terms;
    View<float> sums;
    Event written;  // terms
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
  void sent_bytes_gone(Id const& id, std::size_t bytes);
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
  std::map<std::uint64_t, PendingAllreduce> pending_allreduces_;  // by tag: sums that the ranks are not all ready for
  std::vector<std::uint64_t> unready_allreduces_;                 // of them, those that this rank is not ready for
  Staging sending_, receiving_;
  std::deque<Id> unstaged_sends_;                // have pieces to send, when there is memory to stage them
  std::deque<ReceivedPiece> waiting_pieces_;     // have come, the same
  std::vector<std::function<void()>> deferred_;  // what could fail, and is not for the link's calls
  std::vector<StagedCopy> copies_;
  std::vector<RunningBatch> batches_;
  std::size_t open_ = 0;  // operations of the link
  std::unique_ptr<OrderedBatcher> batcher_;
};

}  // namespace gpups::comm
