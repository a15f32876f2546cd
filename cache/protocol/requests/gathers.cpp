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
  auto const& [id, call, bytes] = request->mine;
  // Other ranks expect the gathers of a rank in the order of their numbers.
  GPUPS_ASSERT(id == started_[number(me_)]);
  gathers_[id].request = request;
  for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(ranks_); ++q) {
    bool const gets_bytes = !request->root || *request->root == Rank{q};
    if (Rank{q} != me_) messenger_.send(Rank{q}, GatherPart{id, call, gets_bytes ? bytes : ""});
  }
  ++started_[number(me_)];
  for (auto const& [rank, part] : gathers_[id].parts) check_call(rank, part, *request);
  keep(me_, {id, call, request->root.value_or(me_) == me_ ? bytes : ""});
}

// A rank starts a gather when it has the bytes of all ranks for the gather before, so it is at most one gather ahead.
void Gathers::on_message(Rank from, GatherPart const& part) {
  auto& next = started_[number(from)];
  if (part.id != next || part.id > started_[number(me_)]) {
    throw PeerError(from, fmt::format("rank {} sent its bytes for gather {}, but gather {} is next (rank {} cannot "
                                      "continue): check that all ranks run the same program and configuration",
                                      number(from), part.id, next, number(me_)));
  }
  ++next;
  keep(from, part);
}

void Gathers::check_call(Rank from, GatherPart const& part, GatherRequest const& request) const {
  if (part.call == request.mine.call) return;
  throw PeerError(from, fmt::format("rank {} calls {} where rank {} calls {} (all ranks must make the same collective "
                                    "calls in the same order): check that all ranks run the same program and "
                                    "configuration",
                                    number(from), comm::peer_text(part.call), number(me_), request.mine.call));
}

void Gathers::keep(Rank from, GatherPart part) {
  auto const id = part.id;
  auto& gather = gathers_[id];
  if (gather.request != nullptr) check_call(from, part, *gather.request);
  gather.parts[from] = std::move(part);
  if (gather.request == nullptr || gather.parts.size() < static_cast<std::size_t>(ranks_)) return;
  for (auto& [rank, of_rank] : gather.parts) gather.request->all.push_back(std::move(of_rank.bytes));
  gather.request->done = true;
  gathers_.erase(id);
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

std::string Gathers::pending_call() const { return pending() == nullptr ? "" : pending()->request->mine.call; }

std::string Gathers::unmatched_call(Rank peer) const {
  for (auto const& [number, gather] : gathers_) {
    auto const its = gather.parts.find(peer);
    if (gather.request == nullptr && its != gather.parts.end()) return comm::peer_text(its->second.call);
  }
  return {};
}

}  // namespace gpups::cache
