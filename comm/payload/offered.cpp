// SPDX-License-Identifier: Apache-2.0
#include "comm/payload/offered.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "comm/payload.hpp"
#include "gpups/array.hpp"
#include "kernels/check.hpp"

namespace gpups::comm {

Offered::Offered(std::shared_ptr<UcxCarrier> link, std::shared_ptr<Lane> lane,
                 std::function<void(Rank, char const*)> wrong, std::function<void()> wake)
    : link_(std::move(link)), lane_(std::move(lane)), wrong_(std::move(wrong)), wake_(std::move(wake)) {
  link_->handle(UcxKind::kDataWanted, [this](UcxHeader const& header, UcxArrival const& arrival) {
    link_->drop(arrival);
    wanted(header);
  });
  link_->handle(UcxKind::kDataPiece,
                [this](UcxHeader const& header, UcxArrival const& arrival) { piece_came(header, arrival); });
  convoy_ = std::make_unique<Convoy>(
      link_, [this](Convoy::Batch const& batch) { go(batch); }, wrong_, wake_);
}

Offered::~Offered() {
  std::lock_guard lock(link_->mutex());
  *alive_ = false;
  if (!batches_.empty()) {
    lane_->abort();
    for (MovedBatch const& batch : batches_) {
      while (!batch.over()) std::this_thread::yield();
    }
    lane_->stream().wait();
  }
  for (Copy const& copy : copies_) copy.over.wait();
  link_->handle(UcxKind::kDataWanted, nullptr);
  link_->handle(UcxKind::kDataPiece, nullptr);
  for (Piece const& piece : waiting_) link_->drop(piece.arrival);
}

template <class F>
Offered::Then Offered::guarded(F then) {
  ++open_;
  return [this, alive = alive_, then = std::move(then)] {
    if (!*alive) return;
    --open_;
    then();
  };
}

bool Offered::takes(Device device, std::size_t bytes) const {
  return bytes > kEagerBytesMax && (!device.is_host() || !link_->reaches(device) || has_lane(device));
}

void Offered::send(Id const& id, void const* data, std::size_t bytes, Stream const& stream, Then gone) {
  outgoing_.emplace(id, Outgoing{static_cast<char const*>(data), bytes, 0, 0, stream, std::move(gone)});
  bool const may_go_by_lane = has_lane(stream.device());
  link_->send(id.first, may_go_by_lane ? UcxKind::kLaneOffer : UcxKind::kDataOffer, id.second, bytes, {});
}

void Offered::receive(Id const& id, bool may_go_by_lane, void* data, std::size_t bytes, Stream const& stream,
                      Then there) {
  auto const [found, fresh] =
      incoming_.emplace(id, Incoming{static_cast<char*>(data), bytes, 0, 0, stream, std::move(there)});
  GPUPS_ASSERT(fresh);
  found->second.by_lane = may_go_by_lane && has_lane(stream.device());
  if (found->second.by_lane) {
    convoy_->ready(id.first, id.second);
  } else {
    bool const may_come_whole = link_->reaches(stream.device());
    link_->send(id.first, UcxKind::kDataWanted, id.second, may_come_whole ? 1 : 0, {});
  }
}

bool Offered::progress() {
  bool const is_writing = tell_written_sums();
  convoy_->progress();
  if (lane_) lane_->check();
  auto const due = std::exchange(due_, {});
  for (auto const& task : due) task();
  stage_some();
  place_some();
  for (Copy& copy : std::exchange(copies_, {})) {
    if (!copy.over.done()) {
      copies_.push_back(std::move(copy));
    } else {
      copy.then();
    }
  }
  bool const is_moving = end_batches();
  return is_writing || is_moving || !copies_.empty() || !due.empty();
}

// -- the sender --

void Offered::wanted(UcxHeader const& header) {
  Id const id{header.from, header.number};
  auto const found = outgoing_.find(id);
  if (found == outgoing_.end() || std::exchange(found->second.wanted, true)) {
    return wrong_(header.from, "it wants what was not offered");
  }
  if (header.bytes > 1) return wrong_(header.from, "it wants a transfer in a way that there is not");
  Outgoing& mine = found->second;
  if (header.bytes == 1 && link_->reaches(mine.stream.device())) {
    mine.next = mine.bytes;
    UcxWay const way = mine.stream.device().is_host() ? UcxWay::kOnDemand : UcxWay::kFromDevice;
    return send_piece(way, id, mine.data, 0, mine.bytes, [this, id, bytes = mine.bytes] { gone(id, bytes); });
  }
  unstaged_.push_back(id);
  wake_();
}

// The transfers that wait for staging memory take turns.
void Offered::stage_some() {
  while (!unstaged_.empty()) {
    auto buffer = sending_.take();
    if (buffer == nullptr) return;
    Id const id = unstaged_.front();
    unstaged_.pop_front();
    Outgoing& mine = outgoing_.at(id);
    std::size_t const offset = mine.next, bytes = std::min(kPieceBytes, mine.bytes - offset);
    mine.next += bytes;
    if (mine.next < mine.bytes) unstaged_.push_back(id);
    memory::copy(mine.stream, buffer.get(), Device::host(), mine.data + offset, mine.stream.device(), bytes);
    auto const kept = std::make_shared<kernels::PinnedPtr>(std::move(buffer));
    copies_.push_back({mine.stream.record(), [this, id, kept, offset, bytes] {
                         send_piece(UcxWay::kOnDemand, id, kept->get(), offset, bytes, [this, id, kept, bytes] {
                           sending_.give_back(std::move(*kept));
                           gone(id, bytes);
                         });
                       }});
  }
}

void Offered::send_piece(UcxWay way, Id const& id, void const* data, std::size_t offset, std::size_t bytes, Then sent) {
  link_->send(way, id.first, UcxKind::kDataPiece, id.second, offset, data, bytes, guarded(std::move(sent)));
}

void Offered::gone(Id const& id, std::size_t bytes) {
  auto const found = outgoing_.find(id);
  found->second.gone_bytes += bytes;
  if (found->second.gone_bytes < found->second.bytes) return;
  Then const then = std::move(found->second.gone);
  outgoing_.erase(found);
  then();
}

// -- the receiver --

void Offered::piece_came(UcxHeader const& header, UcxArrival const& arrival) {
  Id const id{header.from, header.number};
  auto const found = incoming_.find(id);
  std::size_t const offset = header.bytes;
  bool const fits = found != incoming_.end() && !found->second.by_lane && arrival.bytes > 0 &&
                    offset <= found->second.bytes && arrival.bytes <= found->second.bytes - offset &&
                    arrival.bytes <= found->second.bytes - found->second.asked;
  if (!fits || !arrival.remote) {
    link_->drop(arrival);
    return wrong_(header.from, "it sent a piece of what was not wanted");
  }
  found->second.asked += arrival.bytes;
  if (goes_straight(found->second, arrival)) {
    return link_->fetch(arrival, found->second.data + offset,
                        guarded([this, id, bytes = arrival.bytes] { there(id, bytes); }));
  }
  if (arrival.bytes > kPieceBytes) {
    link_->drop(arrival);
    return wrong_(header.from, "it sent a piece that is too large");
  }
  waiting_.push_back({id, offset, arrival});
  wake_();
}

// What lies in a GPU's memory cannot be compared with its checksum.
bool Offered::goes_straight(Incoming const& mine, UcxArrival const& arrival) const {
  Device const device = mine.stream.device();
  return link_->reaches(device) && (device.is_host() || !arrival.check);
}

void Offered::place_some() {
  while (!waiting_.empty()) {
    auto buffer = receiving_.take();
    if (buffer == nullptr) return;
    Piece const piece = waiting_.front();
    waiting_.pop_front();
    bring_staged(piece, std::move(buffer));
  }
}

void Offered::bring_staged(Piece const& piece, kernels::PinnedPtr buffer) {
  auto const kept = std::make_shared<kernels::PinnedPtr>(std::move(buffer));
  auto const copy = [this, kept, id = piece.id, offset = piece.offset, bytes = piece.arrival.bytes] {
    Incoming& mine = incoming_.at(id);
    memory::copy(mine.stream, mine.data + offset, mine.stream.device(), kept->get(), Device::host(), bytes);
    copies_.push_back({mine.stream.record(), [this, kept, id, bytes] {
                         receiving_.give_back(std::move(*kept));
                         there(id, bytes);
                       }});
  };
  link_->fetch(piece.arrival, kept->get(), guarded([this, copy] {
                 due_.push_back(copy);
                 wake_();
               }));
}

void Offered::there(Id const& id, std::size_t bytes) {
  auto const found = incoming_.find(id);
  found->second.there_bytes += bytes;
  if (found->second.there_bytes < found->second.bytes) return;
  Then const then = std::move(found->second.there);
  incoming_.erase(found);
  then();
}

// -- by lane --

void Offered::sum(std::uint64_t tag, View<float const> terms, View<float> sums, Stream& stream, Then there) {
  [[maybe_unused]] bool const fresh =
      summing_.emplace(tag, Summing{terms, sums, stream.record(), std::move(there)}).second;
  GPUPS_ASSERT(fresh && "one sum of a tag at a time");
  unwritten_.push_back(tag);
  tell_written_sums();
}

// A rank whose terms come late is not ready, and holds nobody up who uses the lane for something else. True: some are
// still being written.
bool Offered::tell_written_sums() {
  std::erase_if(unwritten_, [this](std::uint64_t tag) {
    Summing const& mine = summing_.at(tag);
    bool const is_written = mine.written.done();
    if (is_written) convoy_->ready_to_sum(tag, mine.terms.size());
    return is_written;
  });
  return !unwritten_.empty();
}

// True: some are under way. What ends as the lane is given up has not come: whoever gave it up says why.
bool Offered::end_batches() {
  for (MovedBatch& batch : std::exchange(batches_, {})) {
    if (!batch.over() || lane_->is_given_up()) {
      batches_.push_back(std::move(batch));
    } else {
      for (Then const& then : batch.then) then();
    }
  }
  return !batches_.empty();
}

void Offered::go(Convoy::Batch const& batch) {
  if (lane_ == nullptr || batch.empty()) return wrong_(Rank{0}, "it told of transfers by a lane where there are none");
  std::vector<Lane::Part> parts;
  MovedBatch moved;
  for (Convoy::Part const& part : batch) {
    if (part.what != Convoy::What::kSum && !add_part(part, parts, moved.then)) {
      return wrong_(Rank{0}, "it told of a transfer that was not offered or wanted");
    }
  }
  if (!parts.empty()) {
    moved.over = lane_->move(parts);
    batches_.push_back(std::move(moved));
  }
  for (Convoy::Part const& part : batch) {
    if (part.what == Convoy::What::kSum && !begin_sum(part.tag)) {
      return wrong_(Rank{0}, "it told of a sum by a lane that was not begun");
    }
  }
}

// False: there is none of that name.
bool Offered::add_part(Convoy::Part const& part, std::vector<Lane::Part>& parts, std::vector<Then>& then) {
  Id const id{part.peer, part.tag};
  if (part.what == Convoy::What::kSend) {
    auto const found = outgoing_.find(id);
    if (found == outgoing_.end() || found->second.wanted || std::exchange(found->second.by_lane, true)) return false;
    parts.push_back({part.peer, true, const_cast<char*>(found->second.data), found->second.bytes});
    then.push_back([this, id, bytes = found->second.bytes] { gone(id, bytes); });
  } else {
    auto const found = incoming_.find(id);
    if (found == incoming_.end() || !found->second.by_lane) return false;
    lane_->stream().after(found->second.stream.record());  // what used the memory before
    parts.push_back({part.peer, false, found->second.data, found->second.bytes});
    then.push_back([this, id, bytes = found->second.bytes] { there(id, bytes); });
  }
  return true;
}

bool Offered::begin_sum(std::uint64_t tag) {
  auto const found = summing_.extract(tag);
  if (found.empty()) return false;
  Summing& mine = found.mapped();
  lane_->stream().after(mine.written);
  batches_.push_back({lane_->sum(mine.terms, mine.sums), {std::move(mine.there)}});
  return true;
}

}  // namespace gpups::comm
