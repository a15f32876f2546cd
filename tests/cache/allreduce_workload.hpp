// SPDX-License-Identifier: Apache-2.0
// Allreduces that run while ranks do other work. Each result is checked when it is waited for.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <deque>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "gpups/gpups.hpp"

namespace gpups::test {

// Starts an allreduce in a fraction `share` of the calls of maybe_begin(). The seed, equal on all ranks, decides in
// which.
class Sums {
 public:
  Sums(Group const& group, Stream& stream, std::uint64_t seed, double share)
      : group_(group), stream_(stream), random_(seed), share_(share) {}

  void maybe_begin() {
    bool const begins = static_cast<double>(random_() % 1000) < 1000 * share_;
    auto const first = static_cast<std::int64_t>(random_() >> 8);
    std::size_t const n = random_() % 9;
    if (!begins) return;
    std::vector<std::int64_t> mine;
    for (std::size_t i = 0; i < n; ++i) mine.push_back(term(first, i, rank()));
    auto& begun = in_flight_.emplace_back(Begun{first, to_device(stream_, mine), {}});
    begun.request = group_.begin_allreduce(stream_, begun.values);
    ++begun_;
  }
  std::uint64_t begun() const { return begun_; }
  // Waits until at most `keep` allreduces are in flight. Each rank waits in a different order.
  void wait_all_but(std::size_t keep) {
    while (in_flight_.size() > keep) {
      auto const at = (static_cast<std::size_t>(rank()) * 5 + in_flight_.size() / 2) % in_flight_.size();
      auto const begun = std::move(in_flight_[at]);
      in_flight_.erase(in_flight_.begin() + static_cast<std::ptrdiff_t>(at));
      group_.wait_allreduce(stream_, begun.request);
      check(begun);
    }
  }

 private:
  struct Begun {
    std::int64_t first;
    Array<std::int64_t> values;
    CollectiveRequest request;
  };
  // Returns the term of a rank for element i of an array.
  static std::int64_t term(std::int64_t first, std::size_t i, int rank) {
    return first / (rank + 1) + static_cast<std::int64_t>(i);
  }
  int rank() const { return static_cast<int>(number(group_.rank())); }
  void check(Begun const& begun) {
    auto const sums = to_host(stream_, begun.values.view());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      std::int64_t want = 0;
      for (int q = 0; q < group_.size(); ++q) want += term(begun.first, i, q);
      if (sums[i] == want) continue;
      throw std::logic_error(fmt::format("rank {} has {} as element {} of a sum of {} ranks, not {}", rank(), sums[i],
                                         i, group_.size(), want));
    }
  }

  Group group_;
  Stream& stream_;
  std::mt19937_64 random_;
  double share_;
  std::uint64_t begun_ = 0;
  std::deque<Begun> in_flight_;
};

}  // namespace gpups::test
