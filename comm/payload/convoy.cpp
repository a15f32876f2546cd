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
    writer.put<std::uint8_t>(static_cast<std::uint8_t>(part.what));
    writer.put<Rank>(part.peer);
    writer.put<std::uint64_t>(part.tag);
  }
  return writer.take();
}

Convoy::Batch decode(std::string_view body) {
  Reader reader(body);
  Convoy::Batch batch;
  for (auto left = reader.get<std::uint32_t>(); left > 0; --left) {
    auto const what = reader.get<std::uint8_t>();
    if (what > static_cast<std::uint8_t>(Convoy::What::kSum)) throw WireError("a part of a batch of unknown kind");
    auto const peer = reader.get<Rank>();
    batch.push_back({static_cast<Convoy::What>(what), peer, reader.get<std::uint64_t>()});
  }
  reader.end();
  return batch;
}

}  // namespace

Convoy::Convoy(std::shared_ptr<UcxCarrier> link, std::function<void(Batch const&)> go,
               std::function<void(Rank, char const*)> wrong, std::function<void()> wake)
    : link_(std::move(link)),
      go_(std::move(go)),
      wrong_(std::move(wrong)),
      wake_(std::move(wake)),
      sums_ahead_(static_cast<std::size_t>(link_->size())),
      told_(static_cast<std::size_t>(link_->size())) {
  link_->handle(UcxKind::kLaneReady, [this](UcxHeader const& header, UcxArrival const& arrival) {
    link_->drop(arrival);
    ready_came(header);
    wake_();
  });
  link_->handle(UcxKind::kLaneSumReady, [this](UcxHeader const& header, UcxArrival const& arrival) {
    link_->drop(arrival);
    sum_ready_came(header);
    wake_();
  });
  link_->handle(UcxKind::kLaneGo, [this](UcxHeader const& header, UcxArrival const& arrival) {
    std::string const body(static_cast<char const*>(arrival.data), arrival.remote ? 0 : arrival.bytes);
    link_->drop(arrival);
    go_came(header, body);
    wake_();
  });
}

Convoy::~Convoy() {
  link_->handle(UcxKind::kLaneReady, nullptr);
  link_->handle(UcxKind::kLaneSumReady, nullptr);
  link_->handle(UcxKind::kLaneGo, nullptr);
}

void Convoy::ready(Rank from, std::uint64_t tag) {
  if (link_->rank() == Rank{0}) {
    ready_.push_back({What::kReceive, from, Rank{0}, tag});
  } else {
    link_->send(Rank{0}, UcxKind::kLaneReady, tag, number(from), {});
  }
}

void Convoy::ready_came(UcxHeader const& header) {
  // Who takes part has not more than that waiting for it.
  std::size_t const most = told_.size() * told_.size() * kOffersMax;
  bool const is_possible = link_->rank() == Rank{0} && header.bytes < told_.size() && ready_.size() < most;
  if (!is_possible) return wrong_(header.from, "it is ready for what cannot be");
  ready_.push_back({What::kReceive, Rank{static_cast<std::uint32_t>(header.bytes)}, header.from, header.number});
}

void Convoy::ready_to_sum(std::uint64_t tag, std::uint64_t elements) {
  if (link_->rank() == Rank{0}) {
    add_to_sum(Rank{0}, tag, elements);
  } else {
    link_->send(Rank{0}, UcxKind::kLaneSumReady, tag, elements, {});
  }
}

void Convoy::sum_ready_came(UcxHeader const& header) {
  bool const is_possible = link_->rank() == Rank{0} && sums_ahead_[number(header.from)] < kOffersMax;
  if (!is_possible) return wrong_(header.from, "it is ready for a sum that cannot be");
  add_to_sum(header.from, header.number, header.bytes);
}

// Rank 0. What ranks do not agree on never reaches the lane, which would not notice. Rank 0 names another rank than
// itself, also where that one was ready first.
void Convoy::add_to_sum(Rank rank, std::uint64_t tag, std::uint64_t elements) {
  auto const sum = sums_.try_emplace(tag, Sum{elements, {}}).first;
  bool const agrees = sum->second.elements == elements && sum->second.ranks.insert(rank).second;
  if (!agrees) {
    return wrong_(rank == Rank{0} ? *sum->second.ranks.rbegin() : rank, "it is ready for another sum than others are");
  }
  ++sums_ahead_[number(rank)];
  if (sum->second.ranks.size() < told_.size()) return;
  for (std::size_t& ahead : sums_ahead_) --ahead;
  ready_.push_back({What::kSum, {}, {}, tag});
  sums_.erase(sum);
}

void Convoy::progress() {
  while (!ready_.empty()) tell_some();
  for (auto next = told_of_.find(gone_); next != told_of_.end(); next = told_of_.find(gone_)) {
    ++gone_;
    Batch const batch = std::move(next->second);
    told_of_.erase(next);
    go_(batch);
  }
}

// What does not fit into a message that goes at once is for the next batch.
std::size_t Convoy::taken_into(std::map<Rank, Batch>& batches) const {
  constexpr std::size_t kPartsMax = 1024;
  for (std::size_t taken = 0; taken < ready_.size(); ++taken) {
    auto const& [what, from, to, tag] = ready_[taken];
    std::vector<std::pair<Rank, Part>> parts;
    if (what == What::kSum) {
      for (std::uint32_t rank = 0; rank < told_.size(); ++rank) parts.push_back({Rank{rank}, {what, {}, tag}});
    } else {
      parts = {{from, {What::kSend, to, tag}}, {to, {What::kReceive, from, tag}}};
    }
    for (auto const& [rank, part] : parts) {
      if (batches[rank].size() == kPartsMax) return taken;
    }
    for (auto const& [rank, part] : parts) batches[rank].push_back(part);
  }
  return ready_.size();
}

// Rank 0: what has become ready since, as far as it fits into a batch.
void Convoy::tell_some() {
  std::map<Rank, Batch> batches;
  std::size_t const taken = taken_into(batches);
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
