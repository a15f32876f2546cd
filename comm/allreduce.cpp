// SPDX-License-Identifier: Apache-2.0
#include "comm/allreduce.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "gpups/error.hpp"
#include "kernels/add_words.hpp"
#include "kernels/check.hpp"

namespace gpups::comm {

using Slice = SumCarrier::Slice;

Allreduce::Allreduce(Rank me, int ranks, Stream& stream, SumCarrier& carrier, std::uint64_t ahead_max)
    : me_(me),
      ranks_(ranks),
      stream_(stream),
      carrier_(carrier),
      ahead_max_(ahead_max),
      announced_(static_cast<std::size_t>(ranks)) {}

void Allreduce::refuse(Rank peer, std::string const& what) const {
  throw PeerError(peer, fmt::format("rank {} {} (every rank sums the same arrays in the same order): check that all "
                                    "ranks run the same program and configuration",
                                    number(peer), what));
}

template <class F>
void Allreduce::each_other(F f) const {
  for (std::uint32_t q = 0; q < static_cast<std::uint32_t>(ranks_); ++q) {
    if (Rank{q} != me_) f(Rank{q});
  }
}

Allreduce::RunPtr const& Allreduce::run_of(std::uint64_t number) {
  auto& run = runs_[number];
  if (run == nullptr) {
    auto const ranks = static_cast<std::size_t>(ranks_);
    run = std::make_shared<Run>();
    run->number = number;
    run->peers = std::vector<Peer>(ranks);
    run->unadded = ranks - 1;
    run->open = 2 * (ranks - 1);
  }
  return run;
}

// Slices are cut by the size alone; with fewer elements than ranks some are empty.
View<std::int64_t> Allreduce::slice(Run const& run, Rank rank) const {
  auto const values = run.sum->values.view();
  auto const ranks = static_cast<std::size_t>(ranks_);
  std::size_t const first = values.size() * number(rank) / ranks, end = values.size() * (number(rank) + 1) / ranks;
  return values.slice(first, end - first);
}

void Allreduce::begin(std::shared_ptr<Sum> const& sum) {
  RunPtr const run = run_of(begun_++);
  run->sum = sum;
  stream_.after(sum->given);
  each_other([&](Rank q) {
    carrier_.announce(q, run->number, sum->values.size());
    carrier_.send(q, run->number, Slice::kTerms, slice(*run, q), sum, [this, run, q] {
      run->peers[number(q)].has_my_terms = true;
      take_sums(run, q);
    });
  });
  each_other([&](Rank q) {
    if (run->peers[number(q)].announced) agree(run, q);
  });
}

void Allreduce::announced(Rank from, std::uint64_t number_of_sum, std::uint64_t elements) {
  auto& next = announced_[number(from)];
  if (from == me_ || number_of_sum != next || number_of_sum >= begun_ + ahead_max_) {
    refuse(from, fmt::format("began allreduce {} where {} is its next and {} is that of rank {}", number_of_sum, next,
                             begun_, number(me_)));
  }
  ++next;
  RunPtr const run = run_of(number_of_sum);
  auto& peer = run->peers[number(from)];
  peer.announced = true;
  peer.elements = elements;
  if (run->sum != nullptr) agree(run, from);
}

// Both have begun: a rank's numbers are wanted only where its size is this rank's.
void Allreduce::agree(RunPtr const& run, Rank peer) {
  auto& its = run->peers[number(peer)];
  if (its.elements != run->sum->values.size()) {
    refuse(peer, fmt::format("sums {} integers in allreduce {} where rank {} sums {}", its.elements, run->number,
                             number(me_), run->sum->values.size()));
  }
  std::size_t const count = slice(*run, me_).size();
  auto const where = [&its, run, device = stream_.device(), count] {
    its.terms = Array<std::int64_t>(device, count);
    return its.terms.data();
  };
  carrier_.take(peer, run->number, Slice::kTerms, count, where, [this, run, peer] { add(run, peer); });
  its.agreed = true;
  take_sums(run, peer);
}

void Allreduce::add(RunPtr const& run, Rank peer) {
  auto& its = run->peers[number(peer)];
  auto const mine = slice(*run, me_);
  if (!mine.empty()) kernels::add_words(stream_, {.into = mine, .words = its.terms});
  its.added = true;
  if (--run->unadded > 0) return;
  each_other([&](Rank q) { carrier_.send(q, run->number, Slice::kSums, mine, run, [this, run] { end_one(run); }); });
}

// The sums of a slice take the place of what was sent of it, once that has been taken.
void Allreduce::take_sums(RunPtr const& run, Rank peer) {
  auto const& its = run->peers[number(peer)];
  if (!its.agreed || !its.has_my_terms) return;
  auto const sums = slice(*run, peer);
  carrier_.take(
      peer, run->number, Slice::kSums, sums.size(), [sums] { return sums.data(); },
      [this, run, peer] {
        run->peers[number(peer)].here = true;
        end_one(run);
      });
}

// When the last has gone, what was added has been: the memory of the terms may go.
void Allreduce::end_one(RunPtr const& run) {
  if (--run->open > 0) return;
  run->sum->summed = stream_.record();
  run->sum->done = true;
  runs_.erase(run->number);
}

bool Allreduce::idle() const {
  return std::none_of(runs_.begin(), runs_.end(), [](auto const& entry) { return entry.second->sum != nullptr; });
}

// A rank without its terms delays all others: it is named before those whose sums have not come.
Allreduce::Awaited Allreduce::awaited() const {
  Awaited awaited;
  for (auto const& [number_of_sum, run] : runs_) {
    if (run->sum == nullptr) continue;
    awaited.number = number_of_sum;
    for (bool Peer::*const part : {&Peer::announced, &Peer::added, &Peer::has_my_terms, &Peer::here}) {
      each_other([&](Rank q) {
        if (!(run->peers[number(q)].*part)) awaited.ranks.push_back(q);
      });
      if (!awaited.ranks.empty()) return awaited;
    }
    each_other([&](Rank q) { awaited.ranks.push_back(q); });  // that have not taken this rank's sums
    return awaited;
  }
  return awaited;
}

}  // namespace gpups::comm
