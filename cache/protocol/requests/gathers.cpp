// SPDX-License-Identifier: Apache-2.0
#include "cache/protocol/requests/gathers.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "comm/base/peer_error.hpp"
#include "gpups/error.hpp"
#include "kernels/base/check.hpp"
#include "kernels/index/unique_keys.hpp"

namespace gpups::cache {
namespace {

constexpr std::size_t kPartBytesMax = std::size_t{1} << 20;  // bytes of one message
// Maximum number of bytes of a rank for another one: one list of as many keys as a request may have, and an error text.
constexpr std::size_t kBytesMax = sizeof(Key) * (kernels::kUniqueKeysMax + kPartBytesMax);

}  // namespace

Gathers::Gathers(Rank me, int ranks, StoreMessenger& messenger)
    : me_(me), ranks_(ranks), messenger_(messenger), started_(static_cast<std::size_t>(ranks)) {}

void Gathers::begin(std::shared_ptr<GatherRequest> const& request) {
  auto const id = request->id;
  GPUPS_ASSERT(request->mine.size() == 1 || request->mine.size() == static_cast<std::size_t>(ranks_));
  // Other ranks expect the gathers of a rank in the order of their numbers.
  GPUPS_ASSERT(id == started_[number(me_)]);
  auto& gather = gathers_[id];
  gather.request = request;
  for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(ranks_); ++q) {
    if (Rank{q} != me_) send_part(Rank{q}, *request, 0);
  }
  ++started_[number(me_)];
  for (auto const& [rank, part] : gather.parts) {
    check_call(rank, part, *request);
    send_rest(rank, *request);
  }
  keep(me_, {id, request->call, request->bytes_for(me_)});
}

void Gathers::send_part(Rank to, GatherRequest const& request, std::size_t first) {
  std::string_view const bytes = request.bytes_for(to);
  auto const part = bytes.substr(first, kPartBytesMax);
  messenger_.send(to, GatherPart{request.id, request.call, std::string(part), first + part.size() < bytes.size()});
}

// Sends the bytes that were too many for the first message, to a rank that has sent its own. Earlier, it could not
// receive many bytes if its Store had not begun.
void Gathers::send_rest(Rank to, GatherRequest const& request) {
  std::size_t const bytes = request.bytes_for(to).size();
  for (std::size_t first = kPartBytesMax; first < bytes; first += kPartBytesMax) send_part(to, request, first);
}

// A rank starts a gather when it has the bytes of all ranks for the gather before, so it is at most one gather ahead.
void Gathers::on_message(Rank from, GatherPart const& part) {
  auto& next = started_[number(from)];
  if (part.id != next || part.id > started_[number(me_)]) {
    throw PeerError(from, fmt::format("rank {} sent its bytes for gather {}, but gather {} is next (rank {} cannot "
                                      "continue): check that all ranks run the same program and configuration",
                                      number(from), part.id, next, number(me_)));
  }
  if (!part.more) ++next;
  keep(from, part);
}

void Gathers::check_call(Rank from, GatherPart const& part, GatherRequest const& request) const {
  if (part.call == request.call) return;
  throw PeerError(from, fmt::format("rank {} calls {} where rank {} calls {} (all ranks must make the same collective "
                                    "calls in the same order): check that all ranks run the same program and "
                                    "configuration",
                                    number(from), comm::peer_text(part.call), number(me_), request.call));
}

void Gathers::keep(Rank from, GatherPart part) {
  auto const id = part.id;
  auto& gather = gathers_[id];
  if (gather.request != nullptr) check_call(from, part, *gather.request);
  if (!part.more) ++gather.complete;
  auto const [place, is_first] = gather.parts.try_emplace(from);
  auto& kept = place->second;
  if (kept.bytes.size() + part.bytes.size() > kBytesMax) {
    throw PeerError(from, fmt::format("rank {} sent more than {} bytes for gather {} (rank {} cannot keep them): check "
                                      "that all ranks run the same program and configuration",
                                      number(from), kBytesMax, id, number(me_)));
  }
  if (!is_first && gather.request == nullptr) {
    throw PeerError(from, fmt::format("rank {} sent more bytes for gather {} than it may send before rank {} has begun "
                                      "it (they take memory): check that all ranks run the same program",
                                      number(from), id, number(me_)));
  }
  if (is_first) {
    if (gather.request != nullptr && from != me_) send_rest(from, *gather.request);
    kept = std::move(part);
  } else {
    kept.bytes += part.bytes;
    kept.more = part.more;
  }
  if (gather.request == nullptr || gather.complete < static_cast<std::size_t>(ranks_)) return;
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
    auto const place = gather->parts.find(Rank{q});
    if (place == gather->parts.end() || place->second.more) ranks.push_back(Rank{q});
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
