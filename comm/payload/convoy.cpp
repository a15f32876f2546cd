// SPDX-License-Identifier: Apache-2.0
#include "comm/payload/convoy.hpp"

#include <string_view>
#include <utility>

#include "comm/payload/ahead.hpp"
#include "comm/wire.hpp"

namespace gpups::comm {
namespace {

constexpr std::size_t kEarlyMax = 1 << 16;

std::string encode(Convoy::Batch const& batch) {
  Writer writer;
  writer.put<std::uint32_t>(static_cast<std::uint32_t>(batch.size()));
  for (auto const& part : batch) {
    writer.put<Rank>(part.peer);
    writer.put<std::uint8_t>(part.sends);
    writer.put<std::uint64_t>(part.tag);
  }
  return writer.take();
}

Convoy::Batch decode(std::string_view body) {
  Reader reader(body);
  Convoy::Batch batch;
  for (auto left = reader.get<std::uint32_t>(); left > 0; --left) {
    auto const peer = reader.get<Rank>();
    bool const sends = reader.get<std::uint8_t>() != 0;
    batch.push_back({peer, sends, reader.get<std::uint64_t>()});
  }
  reader.end();
  return batch;
}

}  // namespace

Convoy::Convoy(std::shared_ptr<UcxCarrier> link, std::function<void(Batch const&)> go,
               std::function<void(Rank, char const*)> wrong)
    : link_(std::move(link)),
      go_(std::move(go)),
      wrong_(std::move(wrong)),
      told_(static_cast<std::size_t>(link_->size())) {
  link_->handle(UcxKind::kLaneReady, [this](UcxHeader const& header, UcxArrival const& arrival) {
    link_->drop(arrival);
    ready_came(header);
  });
  link_->handle(UcxKind::kLaneGo, [this](UcxHeader const& header, UcxArrival const& arrival) {
    std::string const body(static_cast<char const*>(arrival.data), arrival.remote ? 0 : arrival.bytes);
    link_->drop(arrival);
    go_came(header, body);
  });
}

Convoy::~Convoy() {
  link_->handle(UcxKind::kLaneReady, nullptr);
  link_->handle(UcxKind::kLaneGo, nullptr);
}

void Convoy::ready(Rank from, std::uint64_t tag) {
  if (link_->rank() == Rank{0}) {
    ready_.push_back({from, Rank{0}, tag});
  } else {
    link_->send(Rank{0}, UcxKind::kLaneReady, tag, number(from), {});
  }
}

void Convoy::ready_came(UcxHeader const& header) {
  // Who takes part has not more than that waiting for it.
  std::size_t const most = told_.size() * told_.size() * kOffersMax;
  bool const is_possible = link_->rank() == Rank{0} && header.bytes < told_.size() && ready_.size() < most;
  if (!is_possible) return wrong_(header.from, "it is ready for what cannot be");
  ready_.push_back({Rank{static_cast<std::uint32_t>(header.bytes)}, header.from, header.number});
}

void Convoy::progress() {
  if (!ready_.empty()) tell_all();
  for (auto next = told_of_.find(gone_); next != told_of_.end(); next = told_of_.find(gone_)) {
    ++gone_;
    Batch const batch = std::move(next->second);
    told_of_.erase(next);
    go_(batch);
  }
}

// Rank 0: what has become ready since.
void Convoy::tell_all() {
  // What does not fit into a message that goes at once is for the next batch.
  constexpr std::size_t kPartsMax = 2048;
  std::map<Rank, Batch> batches;
  std::size_t taken = 0;
  for (; taken < ready_.size(); ++taken) {
    Ready const& ready = ready_[taken];
    if (batches[ready.from].size() == kPartsMax || batches[ready.to].size() == kPartsMax) break;
    batches[ready.from].push_back({ready.to, true, ready.tag});
    batches[ready.to].push_back({ready.from, false, ready.tag});
  }
  ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(taken));
  for (auto const& [rank, batch] : batches) {
    if (batch.empty()) continue;
    std::uint64_t const which = told_[number(rank)]++;
    if (rank == Rank{0}) {
      told_of_.emplace(which, batch);
    } else {
      link_->send(rank, UcxKind::kLaneGo, which, 0, encode(batch));
    }
  }
}

void Convoy::go_came(UcxHeader const& header, std::string_view body) {
  try {
    bool const is_possible = header.from == Rank{0} && header.number >= gone_ && header.number - gone_ < kEarlyMax;
    if (is_possible && told_of_.emplace(header.number, decode(body)).second) return;
  } catch (WireError const&) {
  }
  wrong_(header.from, "it told of a batch that cannot be");
}

}  // namespace gpups::comm
