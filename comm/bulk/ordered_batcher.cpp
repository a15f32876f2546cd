// SPDX-License-Identifier: Apache-2.0
#include "comm/bulk/ordered_batcher.hpp"

#include <string_view>
#include <utility>

#include "comm/base/serialization.hpp"
#include "comm/bulk/flow_control.hpp"

namespace gpups::comm {
namespace {

constexpr std::size_t kHeadersAheadMax = 1 << 16;

std::string encode(OrderedBatcher::TransferBatch const& batch) {
  Writer writer;
  writer.put<std::uint32_t>(static_cast<std::uint32_t>(batch.size()));
  for (auto const& operation : batch) {
    writer.put<std::uint8_t>(static_cast<std::uint8_t>(operation.kind));
    writer.put<Rank>(operation.peer);
    writer.put<std::uint64_t>(operation.tag);
  }
  return writer.take();
}

OrderedBatcher::TransferBatch decode_batch(std::string_view body) {
  Reader reader(body);
  OrderedBatcher::TransferBatch batch;
  for (auto left = reader.get<std::uint32_t>(); left > 0; --left) {
    auto const kind = reader.get<std::uint8_t>();
    if (kind > static_cast<std::uint8_t>(OrderedBatcher::Kind::kSum))
      throw SerializationError("a batch has an operation of an unknown kind");
    auto const peer = reader.get<Rank>();
    batch.push_back({static_cast<OrderedBatcher::Kind>(kind), peer, reader.get<std::uint64_t>()});
  }
  reader.end();
  return batch;
}

}  // namespace

OrderedBatcher::OrderedBatcher(std::shared_ptr<ActiveMessages> ucx, std::function<void(TransferBatch const&)> start,
                               std::function<void(Rank, char const*)> report_peer_error, std::function<void()> wake)
    : ucx_(std::move(ucx)),
      start_(std::move(start)),
      report_peer_error_(std::move(report_peer_error)),
      wake_(std::move(wake)),
      allreduces_ahead_(static_cast<std::size_t>(ucx_->size())),
      batches_sent_(static_cast<std::size_t>(ucx_->size())) {
  ucx_->handle(AmKind::kFabricReady, [this](AmHeader const& header, AmArrival const& arrival) {
    ucx_->drop(arrival);
    on_ready(header);
    wake_();
  });
  ucx_->handle(AmKind::kFabricAllreduceReady, [this](AmHeader const& header, AmArrival const& arrival) {
    ucx_->drop(arrival);
    on_allreduce_ready(header);
    wake_();
  });
  ucx_->handle(AmKind::kFabricBatch, [this](AmHeader const& header, AmArrival const& arrival) {
    std::string const body(static_cast<char const*>(arrival.data), arrival.remote ? 0 : arrival.bytes);
    ucx_->drop(arrival);
    on_batch(header, body);
    wake_();
  });
}

OrderedBatcher::~OrderedBatcher() {
  ucx_->handle(AmKind::kFabricReady, nullptr);
  ucx_->handle(AmKind::kFabricAllreduceReady, nullptr);
  ucx_->handle(AmKind::kFabricBatch, nullptr);
}

void OrderedBatcher::ready(Rank from, std::uint64_t tag) {
  if (ucx_->rank() == Rank{0}) {
    ready_.push_back({Kind::kReceive, from, Rank{0}, tag});
  } else {
    ucx_->send(Rank{0}, AmKind::kFabricReady, tag, number(from), {});
  }
}

void OrderedBatcher::on_ready(AmHeader const& header) {
  // A rank that follows the protocol has no more transfers ready.
  std::size_t const most = batches_sent_.size() * batches_sent_.size() * kTransfersAheadMax;
  bool const is_possible = ucx_->rank() == Rank{0} && header.bytes < batches_sent_.size() && ready_.size() < most;
  if (!is_possible) return report_peer_error_(header.from, "it sent an invalid transfer for the device fabric");
  ready_.push_back({Kind::kReceive, Rank{static_cast<std::uint32_t>(header.bytes)}, header.from, header.number});
}

void OrderedBatcher::ready_to_allreduce(std::uint64_t tag, std::uint64_t elements) {
  if (ucx_->rank() == Rank{0}) {
    add_to_allreduce(Rank{0}, tag, elements);
  } else {
    ucx_->send(Rank{0}, AmKind::kFabricAllreduceReady, tag, elements, {});
  }
}

void OrderedBatcher::on_allreduce_ready(AmHeader const& header) {
  bool const is_possible = ucx_->rank() == Rank{0} && allreduces_ahead_[number(header.from)] < kTransfersAheadMax;
  if (!is_possible) return report_peer_error_(header.from, "it sent an invalid allreduce for the device fabric");
  add_to_allreduce(header.from, header.number, header.bytes);
}

// Called on rank 0. The fabric would not notice different sizes, so they are compared here. In the error, rank 0 names
// another rank than itself, even if that rank was ready first.
void OrderedBatcher::add_to_allreduce(Rank rank, std::uint64_t tag, std::uint64_t elements) {
  auto const sum = sums_.try_emplace(tag, AllreduceReadiness{elements, {}}).first;
  bool const agrees = sum->second.elements == elements && sum->second.ranks.insert(rank).second;
  if (!agrees) {
    return report_peer_error_(rank == Rank{0} ? *sum->second.ranks.rbegin() : rank,
                              "its allreduce differs from that of other ranks");
  }
  ++allreduces_ahead_[number(rank)];
  if (sum->second.ranks.size() < batches_sent_.size()) return;
  for (std::size_t& ahead : allreduces_ahead_) --ahead;
  ready_.push_back({Kind::kSum, {}, {}, tag});
  sums_.erase(sum);
}

void OrderedBatcher::progress() {
  while (!ready_.empty()) send_batches();
  for (auto next = announced_batches_.find(batches_started_); next != announced_batches_.end();
       next = announced_batches_.find(batches_started_)) {
    ++batches_started_;
    TransferBatch const batch = std::move(next->second);
    announced_batches_.erase(next);
    start_(batch);
  }
}

// Moves operations of ready_ into batches, as many as fit into one eager message per rank. Returns how many elements of
// ready_ these are.
std::size_t OrderedBatcher::fill_batches(std::map<Rank, TransferBatch>& batches) const {
  constexpr std::size_t kPartsMax = 1024;
  for (std::size_t taken = 0; taken < ready_.size(); ++taken) {
    auto const& [kind, from, to, tag] = ready_[taken];
    std::vector<std::pair<Rank, BatchOperation>> operations;
    if (kind == Kind::kSum) {
      for (std::uint32_t rank = 0; rank < batches_sent_.size(); ++rank)
        operations.push_back({Rank{rank}, {kind, {}, tag}});
    } else {
      operations = {{from, {Kind::kSend, to, tag}}, {to, {Kind::kReceive, from, tag}}};
    }
    for (auto const& [rank, operation] : operations) {
      if (batches[rank].size() == kPartsMax) return taken;
    }
    for (auto const& [rank, operation] : operations) batches[rank].push_back(operation);
  }
  return ready_.size();
}

// Called on rank 0: sends the operations that are ready, as far as they fit into one batch.
void OrderedBatcher::send_batches() {
  std::map<Rank, TransferBatch> batches;
  std::size_t const taken = fill_batches(batches);
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(taken));
  for (auto const& [rank, batch] : batches) {
    if (batch.empty()) continue;
    std::uint64_t const which = batches_sent_[number(rank)]++;
    if (rank == Rank{0}) {
      announced_batches_.emplace(which, batch);
    } else {
      ucx_->send(rank, AmKind::kFabricBatch, which, 0, encode(batch));
    }
  }
}

void OrderedBatcher::on_batch(AmHeader const& header, std::string_view body) {
  try {
    bool const is_possible = header.from == Rank{0} && header.number >= batches_started_ &&
                             header.number - batches_started_ < kHeadersAheadMax;
    if (is_possible && announced_batches_.emplace(header.number, decode_batch(body)).second) return;
  } catch (SerializationError const&) {
  }
  report_peer_error_(header.from, "it sent an invalid batch");
}

}  // namespace gpups::comm
