// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/requests/gathers.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "comm/base/peer_error.hpp"
#include "gpups/error.hpp"
#include "kernels/base/check.hpp"

namespace gpups::cache {

Gathers::Gathers(Rank me, int ranks, StoreMessenger& messenger)
    : me_(me), ranks_(ranks), messenger_(messenger), started_(static_cast<std::size_t>(ranks)) {}

void Gathers::begin(std::shared_ptr<GatherRequest> const& request) {
  // Other ranks expect the gathers of a rank in the order of their numbers.
  GPUPS_ASSERT(request->number == started_[number(me_)]);
  gathers_[request->number].request = request;
  for (int q = 0; q < ranks_; ++q) {
    Rank const to{static_cast<std::uint32_t>(q)};
    if (to == me_) continue;
    Message message{.kind = MessageKind::kGather, .id = request->number, .call = request->call};
    if (!request->root || *request->root == to) message.bytes = request->mine;
    messenger_.send(to, message);
  }
  ++started_[number(me_)];
  for (auto const& [rank, part] : gathers_[request->number].parts) check_call(rank, part, *request);
  keep(request->number, me_, {request->call, request->root.value_or(me_) == me_ ? request->mine : std::string()});
}

// A rank starts a gather when it has the bytes of all ranks for the gather before, so it is at most one gather ahead.
void Gathers::on_message(Rank from, Message const& message) {
  auto& next = started_[number(from)];
  if (message.id != next || message.id > started_[number(me_)]) {
    throw PeerError(from, fmt::format("rank {} sent its bytes for gather {}, but gather {} is next (rank {} cannot "
                                      "continue): check that all ranks run the same program and configuration",
                                      number(from), message.id, next, number(me_)));
  }
  ++next;
  keep(message.id, from, {message.call, message.bytes});
}

void Gathers::check_call(Rank from, Part const& part, GatherRequest const& request) const {
  if (part.call == request.call) return;
  throw PeerError(from, fmt::format("rank {} calls {} where rank {} calls {} (all ranks must make the same collective "
                                    "calls in the same order): check that all ranks run the same program and "
                                    "configuration",
                                    number(from), comm::peer_text(part.call), number(me_), request.call));
}

void Gathers::keep(std::uint64_t number, Rank from, Part part) {
  auto& gather = gathers_[number];
  if (gather.request != nullptr) check_call(from, part, *gather.request);
  gather.parts[from] = std::move(part);
  if (gather.request == nullptr || gather.parts.size() < static_cast<std::size_t>(ranks_)) return;
  for (auto& [rank, of_rank] : gather.parts) gather.request->all.push_back(std::move(of_rank.bytes));
  gather.request->done = true;
  gathers_.erase(number);
}

Gathers::PendingGather const* Gathers::pending() const {
  auto const place =
      std::find_if(gathers_.begin(), gathers_.end(), [](auto const& one) { return one.second.request != nullptr; });
  return place == gathers_.end() ? nullptr : &place->second;
}

std::vector<Rank> Gathers::pending_peers() const {
  std::vector<Rank> ranks;
  PendingGather const* const gather = pending();
  for (std::uint32_t q = 0; gather != nullptr && q < static_cast<std::uint32_t>(ranks_); ++q) {
    if (!gather->parts.contains(Rank{q})) ranks.push_back(Rank{q});
  }
  return ranks;
}

std::string Gathers::pending_call() const { return pending() == nullptr ? "" : pending()->request->call; }

std::string Gathers::unmatched_call(Rank peer) const {
  for (auto const& [number, gather] : gathers_) {
    auto const its = gather.parts.find(peer);
    if (gather.request == nullptr && its != gather.parts.end()) return comm::peer_text(its->second.call);
  }
  return {};
}

}  // namespace gpups::cache
