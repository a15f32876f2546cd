// SPDX-License-Identifier: Apache-2.0
// Lets all ranks take the same way for a sum whose caller leaves it open: rank 0 reckons, and tells the others.
//
// So that nobody waits for that, it tells with each sum what the next of that size will take; what comes first of a
// size has to wait. The costs of the links are measured, or found in the cache, by the first sum that needs a choice.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/collective/link_cache.hpp"
#include "comm/collective/reckoning.hpp"

namespace gpups::comm {

class Selection;

class Selector {
 public:
  // Costs that are assumed instead of measured make the same choices in every run, as a simulation must.
  Selector(LinkCache cache, std::optional<LinkModel> assumed) : cache_(std::move(cache)), assumed_(assumed) {}

  // What the links cost and what was chosen, in lines. Nothing where no sum has left it open, or on other ranks than 0.
  std::vector<std::string> explain() const;

 private:
  friend class Selection;

  // Sums for which choices follow each other.
  struct Line {
    std::uint64_t begun = 0;
    std::uint64_t next_news = 0;      // the sum with which rank 0 says more; known where that one's choice is
    std::uint64_t held = 1;           // sums that its last choice is for
    double given = 0;                 // elements of an array that are not zero, as was guessed: a moving mean
    std::optional<EndedSum> ended{};  // the last one
    struct Place {
      Way const* way = nullptr;  // null: rank 0 has not said it yet
      std::shared_ptr<Delivery> waiting{};
    };
    std::map<std::uint64_t, Place> places;  // by number of the sum; those that are to come, and under way
  };
  struct Size {
    std::uint64_t elements;
    bool sparse;
    NumberFormat format;
    auto operator<=>(Size const&) const = default;
  };

  Task<> learn_links(Mesh& mesh);
  Task<> reckon(Mesh& mesh, bool first);

  LinkCache const cache_;
  std::optional<LinkModel> const assumed_;
  bool begun_ = false;                                // some sum has
  std::optional<Reckoning> reckoning_;                // on rank 0, once the links are known
  std::vector<std::shared_ptr<Delivery>> reckoners_;  // sums that wait for it
  std::string links_;                                 // what is to be said of them
  std::map<Size, Line> lines_;
};

// The choice for one sum. Made when its run begins: in the same order on all ranks. Rank 0's shape counts; how many
// elements of an array are not zero may be a guess, of which the mean is taken.
class Selection {
 public:
  Selection(Selector& selector, Mesh& mesh, SumShape const& mine);

  // Once.
  Task<Way const*> way();
  // The sum has ended. entries: that are not zero in it, where that is known. Awaited before the run ends.
  Task<> end(std::optional<std::uint64_t> entries);

 private:
  static SumShape with_mean(Selector::Line& line, SumShape shape);
  Task<> news();
  Task<> tell();
  Task<> hear();
  Task<> tell_time();
  Task<> hear_times();
  void set(Way const* way, unsigned held_log2);

  Selector& selector_;
  Mesh& mesh_;
  bool const first_;  // of all
  Selector::Line& line_;
  std::uint64_t const sum_;
  SumShape const shape_;
  Task<> news_;
  bool has_news_ = false;
  std::uint64_t stands_for_ = 1;  // the sum before it: so many of which that one's time is known
  Way const* way_ = nullptr;
  double began_ = 0;
};

}  // namespace gpups::comm
