// SPDX-License-Identifier: Apache-2.0
#include "comm/payload/agree_on_lane.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <vector>

#include "comm/peer_text.hpp"
#include "comm/wire.hpp"
#include "gpups/error.hpp"

namespace gpups::comm {
namespace {

LaneOffer read_offer(Rank from, std::string const& said) try {
  Reader reader(said);
  std::string place(reader.get_text());
  LaneOffer offer{std::move(place), peer_text(reader.get_text())};
  reader.end();
  return offer;
} catch (WireError const& error) {
  throw PeerError(from,
                  fmt::format("rank {} said of its device what cannot be understood: {} (nobody knows how to reach "
                              "it): check that all ranks run the same version",
                              number(from), error.what()));
}

std::vector<LaneOffer> wait_offers(Talk& talk, LaneOffer const& mine) {
  Writer writer;
  writer.put_text(mine.place);
  writer.put_text(mine.why_not);
  std::vector<LaneOffer> offers;
  for (std::string const& said : talk.wait_say_to_all(writer.take())) {
    offers.push_back(read_offer(Rank{static_cast<std::uint32_t>(offers.size())}, said));
  }
  return offers;
}

// What went wrong; empty: nothing.
template <class Call>
std::string fault_of(Call call) {
  try {
    call();
    return {};
  } catch (Error const& error) {
    return error.what();
  }
}

std::string wait_first_fault(Talk& talk, std::string const& mine) {
  auto const all = talk.wait_say_to_all(mine);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank].empty()) return fmt::format("rank {}: {}", rank, peer_text(all[rank]));
  }
  return {};
}

}  // namespace

std::string no_lane_between(std::span<LaneOffer const> offers) {
  std::map<std::string, std::size_t> ranks;
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    auto const& [place, why_not] = offers[rank];
    if (place.empty()) return fmt::format("rank {} is on the host", rank);
    if (!why_not.empty()) return fmt::format("rank {}: {}", rank, why_not);
    auto const [other, fresh] = ranks.emplace(place, rank);
    if (!fresh) return fmt::format("ranks {} and {} share a device", other->second, rank);
  }
  return {};
}

AgreedLane wait_agree_on_lane(Talk& talk, LaneMaker& maker) {
  auto const offers = wait_offers(talk, maker.offer());
  bool const any_device = std::any_of(offers.begin(), offers.end(), [](auto const& o) { return !o.place.empty(); });
  if (!any_device || offers.size() < 2) return {};
  AgreedLane agreed;
  agreed.why_not = no_lane_between(offers);
  if (!agreed.why_not.empty()) return agreed;

  std::string id;
  agreed.why_not = wait_first_fault(talk, talk.rank() == 0 ? fault_of([&] { id = maker.make_id(); }) : "");
  if (!agreed.why_not.empty()) return agreed;
  id = talk.wait_tell(id);

  Rank const me{static_cast<std::uint32_t>(talk.rank())};
  agreed.why_not = wait_first_fault(talk, fault_of([&] { agreed.lane = maker.wait_make(id, me, talk.size()); }));
  if (!agreed.why_not.empty()) agreed.lane.reset();
  return agreed;
}

}  // namespace gpups::comm
