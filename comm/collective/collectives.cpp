// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/collectives.hpp"

#include <fmt/core.h>

#include <utility>

#include "comm/peer_lost.hpp"
#include "comm/wire.hpp"
#include "gpups/error.hpp"

namespace gpups::comm {

Collectives::Collectives(Rank me, int ranks, CollectiveCarrier& carrier, std::uint64_t ahead_max)
    : me_(me),
      ranks_(ranks),
      carrier_(carrier),
      ahead_max_(ahead_max),
      announced_(static_cast<std::size_t>(ranks)) {}

Collectives::Entry& Collectives::entry_of(std::uint64_t number_of_run) {
  Entry& entry = runs_[number_of_run];
  if (entry.run == nullptr) {
    entry.run =
        std::make_shared<Run>(me_, ranks_, unknown_, carrier_, number_of_run, [this](Run&) { end_those_over(); });
  }
  return entry;
}

void Collectives::begin(std::shared_ptr<Collective> const& collective, Stream const& stream) {
  Entry& entry = entry_of(begun_++);
  entry.collective = collective;
  ++begun_runs_;
  if (!stream.device().is_host()) ++on_device_;
  entry.run->use(stream);
  entry.run->stream().after(collective->given);
  entry.run->begin(collective->signature(), [collective](Mesh& mesh) { return collective->run(mesh, collective); });
}

std::size_t Collectives::heard(Rank from, std::uint64_t number_of_run, std::string_view text) {
  Header header;
  try {
    header = decode_header(text);
  } catch (WireError const& error) {
    throw PeerError(from, fmt::format("rank {} sent what is not a part of a collective: {} (nothing it says can be "
                                      "trusted): check that all ranks run the same version",
                                      number(from), error.what()));
  }
  auto& next = announced_[number(from)];
  bool const new_run = header.signature.has_value();
  bool const possible = from != me_ && (new_run ? number_of_run == next && next < begun_ + ahead_max_
                                                : number_of_run < next && runs_.contains(number_of_run));
  if (!possible) {
    throw PeerError(
        from, fmt::format("rank {} {} allreduce {} where {} is its next and {} is that of rank {} (every "
                          "rank sums the same arrays in the same order): check that all ranks run the "
                          "same program and configuration",
                          number(from), new_run ? "began" : "goes on with", number_of_run, next, begun_, number(me_)));
  }
  if (new_run) ++next;
  auto const run = entry_of(number_of_run).run;
  std::size_t const inside = header.item ? header.item->bytes.size() : 0;
  run->heard(from, std::move(header));
  return inside;
}

void Collectives::end(Entries::iterator which) {
  auto const entry = std::move(which->second);
  runs_.erase(which);
  --begun_runs_;
  if (!entry.run->stream().device().is_host()) --on_device_;
  entry.collective->ended = entry.run->stream().record();
  entry.collective->done = true;
}

// A run may have gone on with another one's choice, and have ended by that.
void Collectives::end_those_over() {
  for (auto next = runs_.begin(); next != runs_.end();) {
    auto const here = next++;
    if (here->second.collective != nullptr && here->second.run->over()) end(here);
  }
}

bool Collectives::progress() {
  if (on_device_ == 0) return false;
  std::vector<std::shared_ptr<Run>> runs;
  for (auto const& [number_of_run, entry] : runs_) runs.push_back(entry.run);
  bool awaits = false;
  for (auto const& run : runs) awaits |= run->progress();
  return awaits;
}

void Collectives::closed_by(Rank peer) {
  for (auto const& [number_of_run, entry] : runs_) {
    if (entry.collective != nullptr && !entry.run->has_heard(peer)) throw PeerLost(peer, "");
  }
}

Awaited Collectives::awaited() const {
  for (auto const& [number_of_run, entry] : runs_) {
    if (entry.collective == nullptr) continue;
    return {entry.run->awaited(), fmt::format("the sums of {} {}", name_of(entry.run->operation()), number_of_run)};
  }
  return {};
}

}  // namespace gpups::comm
