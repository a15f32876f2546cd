// SPDX-License-Identifier: Apache-2.0
#include "comm/bulk/rendezvous.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "comm/bulk/bulk_transport.hpp"
#include "gpups/array.hpp"
#include "kernels/base/check.hpp"

namespace gpups::comm {

RendezvousTransfers::RendezvousTransfers(std::shared_ptr<ActiveMessages> ucx, std::shared_ptr<DeviceFabric> fabric,
                                         std::function<void(Rank, char const*)> report_peer_error,
                                         std::function<void()> wake)
    : ucx_(std::move(ucx)),
      fabric_(std::move(fabric)),
      report_peer_error_(std::move(report_peer_error)),
      wake_(std::move(wake)) {
  ucx_->handle(AmKind::kBulkRequest, [this](AmHeader const& header, AmArrival const& arrival) {
    ucx_->drop(arrival);
    on_request(header);
  });
  ucx_->handle(AmKind::kBulkPiece,
               [this](AmHeader const& header, AmArrival const& arrival) { on_piece(header, arrival); });
  batcher_ = std::make_unique<OrderedBatcher>(
      ucx_, [this](OrderedBatcher::TransferBatch const& batch) { start_batch(batch); }, report_peer_error_, wake_);
}

RendezvousTransfers::~RendezvousTransfers() {
  std::lock_guard lock(ucx_->mutex());
  *alive_ = false;
  if (!batches_.empty()) {
    fabric_->abort();
    for (RunningBatch const& batch : batches_) {
      while (!batch.done()) std::this_thread::yield();
    }
  }
  try {
    if (!batches_.empty()) fabric_->stream().wait();
    for (StagedCopy const& copy : copies_) copy.done.wait();
  } catch (Error const&) {  // NOLINT: a device that reports errors copies nothing more
  }
  ucx_->handle(AmKind::kBulkRequest, nullptr);
  ucx_->handle(AmKind::kBulkPiece, nullptr);
  for (ReceivedPiece const& piece : waiting_pieces_) ucx_->drop(piece.arrival);
}

template <class F>
RendezvousTransfers::OnDone RendezvousTransfers::guarded(F on_done) {
  ++open_;
  return [this, alive = alive_, on_done = std::move(on_done)] {
    if (!*alive) return;
    --open_;
    on_done();
  };
}

bool RendezvousTransfers::handles(Device device, std::size_t bytes) const {
  return bytes > kEagerBytesMax && (!device.is_host() || !ucx_->reaches(device) || has_fabric(device));
}

void RendezvousTransfers::send(Id const& id, void const* data, std::size_t bytes, Stream const& stream,
                               OnDone on_sent) {
  outgoing_.emplace(id, OutgoingTransfer{static_cast<char const*>(data), bytes, 0, 0, stream, std::move(on_sent)});
  bool const offers_fabric = has_fabric(stream.device());
  ucx_->send(id.first, offers_fabric ? AmKind::kFabricOffer : AmKind::kBulkOffer, id.second, bytes, {});
}

void RendezvousTransfers::receive(Id const& id, bool offers_fabric, void* data, std::size_t bytes, Stream const& stream,
                                  OnDone on_received) {
  auto const [found, fresh] =
      incoming_.emplace(id, IncomingTransfer{static_cast<char*>(data), bytes, 0, 0, stream, std::move(on_received)});
  GPUPS_ASSERT(fresh);
  found->second.by_fabric = offers_fabric && has_fabric(stream.device());
  if (found->second.by_fabric) {
    batcher_->ready(id.first, id.second);
  } else {
    bool const may_come_whole = ucx_->reaches(stream.device());
    ucx_->send(id.first, AmKind::kBulkRequest, id.second, may_come_whole ? 1 : 0, {});
  }
}

bool RendezvousTransfers::progress() {
  bool const is_writing = announce_ready_sums();
  batcher_->progress();
  if (fabric_) fabric_->check();
  auto const deferred = std::exchange(deferred_, {});
  for (auto const& task : deferred) task();
  stage_sends();
  stage_receives();
  for (StagedCopy& copy : std::exchange(copies_, {})) {
    if (!copy.done.done()) {
      copies_.push_back(std::move(copy));
    } else {
      copy.on_done();
    }
  }
  bool const is_moving = end_batches();
  return is_writing || is_moving || !copies_.empty() || !deferred.empty();
}

// -- the sender --

void RendezvousTransfers::on_request(AmHeader const& header) {
  Id const id{header.from, header.number};
  auto const found = outgoing_.find(id);
  if (found == outgoing_.end() || std::exchange(found->second.on_request, true)) {
    return report_peer_error_(header.from, "it requested a transfer that was not announced");
  }
  if (header.bytes > 1) return report_peer_error_(header.from, "it requested an unknown transfer mode");
  OutgoingTransfer& mine = found->second;
  if (header.bytes == 1 && ucx_->reaches(mine.stream.device())) {
    mine.next = mine.bytes;
    AmProtocol const protocol =
        mine.stream.device().is_host() ? AmProtocol::kRendezvous : AmProtocol::kDeviceRendezvous;
    return send_piece(protocol, id, mine.data, 0, mine.bytes,
                      [this, id, bytes = mine.bytes] { count_sent(id, bytes); });
  }
  unstaged_sends_.push_back(id);
  wake_();
}

// Transfers that wait for staging memory are sent by turns, one piece each.
void RendezvousTransfers::stage_sends() {
  while (!unstaged_sends_.empty()) {
    Id const id = unstaged_sends_.front();
    OutgoingTransfer& mine = outgoing_.at(id);
    auto buffer = sending_.take(mine.stream.device());
    if (buffer == nullptr) return;
    unstaged_sends_.pop_front();
    std::size_t const offset = mine.next, bytes = std::min(kPieceBytes, mine.bytes - offset);
    mine.next += bytes;
    if (mine.next < mine.bytes) unstaged_sends_.push_back(id);
    memory::copy(mine.stream, buffer.get(), Device::host(), mine.data + offset, mine.stream.device(), bytes);
    auto const kept = std::make_shared<kernels::PinnedPtr>(std::move(buffer));
    copies_.push_back({mine.stream.record(), [this, id, kept, offset, bytes] {
                         send_piece(AmProtocol::kRendezvous, id, kept->get(), offset, bytes, [this, id, kept, bytes] {
                           sending_.give_back(std::move(*kept));
                           count_sent(id, bytes);
                         });
                       }});
  }
}

void RendezvousTransfers::send_piece(AmProtocol protocol, Id const& id, void const* data, std::size_t offset,
                                     std::size_t bytes, OnDone sent) {
  ucx_->send(protocol, id.first, AmKind::kBulkPiece, id.second, offset, data, bytes, guarded(std::move(sent)));
}

void RendezvousTransfers::count_sent(Id const& id, std::size_t bytes) {
  auto const found = outgoing_.find(id);
  found->second.sent_bytes += bytes;
  if (found->second.sent_bytes < found->second.bytes) return;
  OnDone const on_done = std::move(found->second.on_sent);
  outgoing_.erase(found);
  on_done();
}

// -- the receiver --

void RendezvousTransfers::on_piece(AmHeader const& header, AmArrival const& arrival) {
  Id const id{header.from, header.number};
  auto const found = incoming_.find(id);
  std::size_t const offset = header.bytes;
  bool const fits = found != incoming_.end() && !found->second.by_fabric && arrival.bytes > 0 &&
                    offset <= found->second.bytes && arrival.bytes <= found->second.bytes - offset &&
                    arrival.bytes <= found->second.bytes - found->second.requested_bytes;
  if (!fits || !arrival.remote) {
    ucx_->drop(arrival);
    return report_peer_error_(header.from, "it sent a piece that was not requested");
  }
  found->second.requested_bytes += arrival.bytes;
  if (is_direct(found->second, arrival)) {
    return ucx_->fetch(arrival, found->second.data + offset,
                       guarded([this, id, bytes = arrival.bytes] { on_received(id, bytes); }));
  }
  if (arrival.bytes > kPieceBytes) {
    ucx_->drop(arrival);
    return report_peer_error_(header.from, "it sent a piece that is too large");
  }
  waiting_pieces_.push_back({id, offset, arrival});
  wake_();
}

// Checksums cannot be computed in GPU memory, so data with a checksum go through staging.
bool RendezvousTransfers::is_direct(IncomingTransfer const& mine, AmArrival const& arrival) const {
  Device const device = mine.stream.device();
  return ucx_->reaches(device) && (device.is_host() || !arrival.checksum);
}

void RendezvousTransfers::stage_receives() {
  while (!waiting_pieces_.empty()) {
    ReceivedPiece const piece = waiting_pieces_.front();
    auto buffer = receiving_.take(incoming_.at(piece.id).stream.device());
    if (buffer == nullptr) return;
    waiting_pieces_.pop_front();
    receive_staged(piece, std::move(buffer));
  }
}

void RendezvousTransfers::receive_staged(ReceivedPiece const& piece, kernels::PinnedPtr buffer) {
  auto const kept = std::make_shared<kernels::PinnedPtr>(std::move(buffer));
  auto const copy = [this, kept, id = piece.id, offset = piece.offset, bytes = piece.arrival.bytes] {
    IncomingTransfer& mine = incoming_.at(id);
    memory::copy(mine.stream, mine.data + offset, mine.stream.device(), kept->get(), Device::host(), bytes);
    copies_.push_back({mine.stream.record(), [this, kept, id, bytes] {
                         receiving_.give_back(std::move(*kept));
                         on_received(id, bytes);
                       }});
  };
  ucx_->fetch(piece.arrival, kept->get(), guarded([this, copy] {
                deferred_.push_back(copy);
                wake_();
              }));
}

void RendezvousTransfers::on_received(Id const& id, std::size_t bytes) {
  auto const found = incoming_.find(id);
  found->second.received_bytes += bytes;
  if (found->second.received_bytes < found->second.bytes) return;
  OnDone const on_done = std::move(found->second.on_received);
  incoming_.erase(found);
  on_done();
}

// -- by fabric --

void RendezvousTransfers::sum(std::uint64_t tag, FabricSum const& arrays, Stream& stream, OnDone on_received) {
  [[maybe_unused]] bool const fresh =
      pending_allreduces_.emplace(tag, PendingAllreduce{arrays, stream.record(), std::move(on_received)}).second;
  GPUPS_ASSERT(fresh && "a tag is for one allreduce at a time");
  unready_allreduces_.push_back(tag);
  announce_ready_sums();
}

// Reports the allreduces whose terms are written. The fabric can be used for other operations until then. Returns true
// while some are not written.
bool RendezvousTransfers::announce_ready_sums() {
  std::erase_if(unready_allreduces_, [this](std::uint64_t tag) {
    PendingAllreduce const& mine = pending_allreduces_.at(tag);
    bool const is_written = mine.written.done();
    if (is_written) batcher_->ready_to_allreduce(tag, mine.arrays.bytes());
    return is_written;
  });
  return !unready_allreduces_.empty();
}

// Ends the batches that are done; returns true while some are running. Batches of a fabric that is given up never end:
// the caller of abort() reports why.
bool RendezvousTransfers::end_batches() {
  for (RunningBatch& batch : std::exchange(batches_, {})) {
    if (!batch.done() || fabric_->is_given_up()) {
      batches_.push_back(std::move(batch));
    } else {
      for (OnDone const& on_done : batch.on_done) on_done();
    }
  }
  return !batches_.empty();
}

void RendezvousTransfers::start_batch(OrderedBatcher::TransferBatch const& batch) {
  if (fabric_ == nullptr || batch.empty())
    return report_peer_error_(Rank{0}, "it sent a batch for a device fabric that does not exist");
  std::vector<DeviceFabric::P2pOp> operations;
  RunningBatch moved;
  for (OrderedBatcher::BatchOperation const& operation : batch) {
    if (operation.kind != OrderedBatcher::Kind::kSum && !add_operation(operation, operations, moved.on_done)) {
      return report_peer_error_(Rank{0}, "it sent a batch with a transfer that was not announced or requested");
    }
  }
  if (!operations.empty()) {
    moved.done = fabric_->move(operations);
    batches_.push_back(std::move(moved));
  }
  for (OrderedBatcher::BatchOperation const& operation : batch) {
    if (operation.kind == OrderedBatcher::Kind::kSum && !start_allreduce(operation.tag)) {
      return report_peer_error_(Rank{0}, "it sent a batch with an allreduce that was not started");
    }
  }
}

// Adds the operation to the batch. Returns false if this rank has no such transfer.
bool RendezvousTransfers::add_operation(OrderedBatcher::BatchOperation const& operation,
                                        std::vector<DeviceFabric::P2pOp>& operations, std::vector<OnDone>& on_done) {
  Id const id{operation.peer, operation.tag};
  if (operation.kind == OrderedBatcher::Kind::kSend) {
    auto const found = outgoing_.find(id);
    if (found == outgoing_.end() || found->second.on_request || std::exchange(found->second.by_fabric, true))
      return false;
    operations.push_back({operation.peer, true, const_cast<char*>(found->second.data), found->second.bytes});
    on_done.push_back([this, id, bytes = found->second.bytes] { count_sent(id, bytes); });
  } else {
    auto const found = incoming_.find(id);
    if (found == incoming_.end() || !found->second.by_fabric) return false;
    fabric_->stream().after(found->second.stream.record());  // after previous uses of the memory
    operations.push_back({operation.peer, false, found->second.data, found->second.bytes});
    on_done.push_back([this, id, bytes = found->second.bytes] { on_received(id, bytes); });
  }
  return true;
}

bool RendezvousTransfers::start_allreduce(std::uint64_t tag) {
  auto const found = pending_allreduces_.extract(tag);
  if (found.empty()) return false;
  PendingAllreduce& mine = found.mapped();
  fabric_->stream().after(mine.written);
  batches_.push_back({fabric_->sum(mine.arrays), {std::move(mine.on_received)}});
  return true;
}

}  // namespace gpups::comm
