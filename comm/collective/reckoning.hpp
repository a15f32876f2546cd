// SPDX-License-Identifier: Apache-2.0
// Which algorithm sums fastest: by the costs of the links at first, and by what sums have taken since: those of the
// same kind, each compared with the usual one just before and after it, and before there are any, how far the model was
// off in those most like them. One rank reckons, for all of them.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "comm/collective/algorithms.hpp"
#include "comm/collective/comparison.hpp"
#include "comm/collective/link_model.hpp"
#include "comm/collective/tries.hpp"

namespace gpups::comm {

class Reckoning {
 public:
  explicit Reckoning(LinkModel const& model) : model_(model) {}

  // Of each algorithm that can do it: of those that were measured, fastest first, and then of the others. One at least:
  // the caller has seen to it. The first is the usual one.
  std::vector<Estimate> estimates(SumShape const& shape) const;
  // What the next sum should take: the usual one, or another that is tried.
  Estimate next(SumShape const& shape);
  Algorithm const& choose(SumShape const& shape) const { return *estimates(shape).front().algorithm; }

  // A sum has ended. Its time counts if the one before took the same algorithm: the first of several has to get its
  // memory, and finds nothing in the caches. entries: that are not zero in it, where that is known. stands_for: this
  // sum and those before it that took the same algorithm, whose times were not told.
  void learn(SumShape const& shape, Algorithm const& algorithm, double seconds, std::uint64_t const* entries,
             std::uint64_t stands_for = 1);

  // A line for each kind of sum so far: what is chosen, and why.
  std::vector<std::string> explain() const;

 private:
  // Sums that are alike: their density differs by less than half.
  struct Kind {
    std::uint64_t elements;
    bool sparse;
    NumberFormat format;
    int density;
    auto operator<=>(Kind const&) const = default;
  };
  // The last values of something, as many as there are places.
  template <std::size_t kPlaces>
  struct Last {
    std::size_t count = 0;  // of all that there were
    double values[kPlaces] = {};
    void add(double value) { values[count++ % kPlaces] = value; }
    std::vector<double> all() const { return {values, values + std::min(count, kPlaces)}; }
  };
  struct Times {
    std::uint64_t runs = 0;
    Last<5> seconds;  // of sums that count
    Last<5> paces;    // what it took, in units that are the same for all algorithms of the kind
    // Their median; 0 where there are none.
    double pace() const { return paces.count == 0 ? 0 : median(paces.all()); }
  };
  struct Seen {
    SumShape shape;  // the last one
    std::uint64_t sums = 0;
    Algorithm const* last = nullptr;  // what the last sum took
    Tries tries;
    Comparison comparison;
    double fill = 0;  // entries of a sum for each that a rank gave: a moving mean; 0 where it is not known
    std::map<Algorithm const*, Times> times;
    // What is fastest of all that was compared, and what it takes nowadays; null and 0 where nothing was.
    Algorithm const* usual() const;
    double usual_s() const;
    // What the algorithm would take nowadays; 0 where that is not known.
    double measured_s(Algorithm const& algorithm) const;
  };

  static Kind kind_of(SumShape const& shape);
  double modelled_s(Algorithm const& algorithm, SumShape const& shape, double fill) const;
  // What the algorithm has taken for what was modelled, in the nearest kind that knows; 0: in none that is near.
  double how_far_off(Algorithm const& algorithm, Kind const& kind) const;

  LinkModel model_;
  std::map<Kind, Seen> seen_;
};

}  // namespace gpups::comm
