// SPDX-License-Identifier: Apache-2.0
// Which way sums fastest: by the costs of the links at first, and by what sums have taken since: those of the
// same kind, each compared with the usual one just before and after it, and before there are any, how far the model was
// off in those most like them. One rank reckons, for all of them.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/collective/comparison.hpp"
#include "comm/collective/link_model.hpp"
#include "comm/collective/tries.hpp"
#include "comm/collective/ways.hpp"

namespace gpups::comm {

// A sum that is over.
struct EndedSum {
  std::uint64_t number = 0;  // among all of its length and format: one more than that of the one before it
  SumShape shape{};
  Way const* way = nullptr;
  double seconds = 0;                      // more than 0
  std::optional<std::uint64_t> entries{};  // that are not zero in it, where that is known
  std::uint64_t stands_for = 1;            // it, and those before it that went the same way, whose times were not told
};

class Reckoning {
 public:
  explicit Reckoning(LinkModel const& model) : model_(model) {}

  // Of each way that can do it: of those that were measured, fastest first, and then of the others. One at least:
  // the caller has seen to it. The first is the usual one.
  std::vector<Estimate> estimates(SumShape const& shape) const;
  // What the next sum should take: the usual one, or another that is tried.
  Estimate next(SumShape const& shape);
  Way const& choose(SumShape const& shape) const { return *estimates(shape).front().way; }

  // Its time counts if the one before went the same way: the first of several has to get its memory, and finds
  // nothing in the caches.
  void learn(EndedSum const& sum);

  // A line for each kind of sum so far: what is chosen, and why.
  std::vector<std::string> explain() const;

 private:
  // Sums that are alike: their density differs by less than half.
  struct Kind {
    std::uint64_t elements;
    bool sparse;
    NumberFormat format;  // that numbers may go in
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
    std::uint64_t ran = 0;    // sums of the kind up to the last that it was taken for
    std::uint64_t tries = 0;  // of it, beside a usual one
    Last<5> seconds;          // of sums that count
    Last<5> paces;            // what it took of the usual one's time
    double pace = 0;          // their median; 0 where there are none
    // What it last took. What disturbs a sum makes it slower, never faster; but the least of five times may be luck.
    double lately_s() const;
  };
  struct Seen {
    SumShape shape;  // the last one
    std::uint64_t sums = 0;
    std::uint64_t last_number = 0;
    Way const* last = nullptr;  // what the last sum took
    Tries tries;
    Comparison comparison;
    double fill = 0;  // entries of a sum for each that a rank gave: a moving mean; 0 where it is not known
    std::map<Way const*, Times> times;
    // What is fastest of all that was compared, and what it takes nowadays; null and 0 where nothing was.
    Way const* usual = nullptr;
    double usual_s = 0;

    void add(Comparison::Result const& result);
    void find_usual();
    // What the way would take nowadays; 0 where that is not known.
    double measured_s(Way const& way) const;
  };

  Kind kind_of(SumShape const& shape) const;
  double modelled_s(Way const& way, SumShape const& shape, double fill) const;
  // What the way has taken for what was modelled, in the nearest kind that knows; 0: in none that is near.
  double how_far_off(Way const& way, Kind const& kind) const;

  LinkModel model_;
  std::map<Kind, Seen> seen_;
};

}  // namespace gpups::comm
