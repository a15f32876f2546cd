// SPDX-License-Identifier: Apache-2.0
// Sums arrays of integers over the ranks: each rank adds up one slice of all ranks' arrays, and then gives its sums to
// all of them. A rank sends 16 * (ranks - 1) / ranks bytes for each element, and takes memory for as much again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpups/array.hpp"
#include "gpups/stream.hpp"
#include "gpups/types.hpp"

namespace gpups::comm {

// Elements of one array.
inline constexpr std::uint64_t kSumElementsMax = std::uint64_t{1} << 32;

// An array that is summed with those of the other ranks.
struct Sum {
  Array<std::int64_t> values;  // (n): this rank's, and then the sums
  Event given;                 // this rank's are there
  Event summed{};              // the sums are there; once `done`
  std::atomic<bool> done = false;
};

// Who sums over the ranks of a group: a store, while it lives.
class Reducer {
 public:
  virtual ~Reducer() = default;
  virtual Device device() const = 0;
  // Begins a sum; its k-th is that of all ranks' k-th.
  virtual void begin_sum(std::shared_ptr<Sum> const& sum) = 0;
  // Blocks until sum.done. Throws what has gone wrong meanwhile.
  virtual void wait_sum(Sum const& sum) = 0;
};

// What carries the sums: headers, and slices of one of two kinds. `number` says of which sum.
class SumCarrier {
 public:
  enum class Slice { kTerms, kSums };

  virtual ~SumCarrier() = default;
  // The other rank's Allreduce::announced() is called.
  virtual void announce(Rank to, std::uint64_t number, std::uint64_t elements) = 0;
  // `keep` stays alive, and the data must stay as it is, until `then` is called; at once where there is none.
  virtual void send(Rank to, std::uint64_t number, Slice kind, View<std::int64_t const> data,
                    std::shared_ptr<void const> keep, std::function<void()> then) = 0;
  // `where` gives memory for `elements`, when as many are at hand; `then` is called when they are there; at once for
  // none.
  virtual void take(Rank from, std::uint64_t number, Slice kind, std::size_t elements,
                    std::function<std::int64_t*()> where, std::function<void()> then) = 0;
};

// Only the thread that turns uses this object. `stream` is its own.
class Allreduce {
 public:
  // How many sums a rank may have begun that another has not.
  Allreduce(Rank me, int ranks, Stream& stream, SumCarrier& carrier, std::uint64_t ahead_max);

  // REQUIRES: at least two ranks, at most kSumElementsMax elements.
  void begin(std::shared_ptr<Sum> const& sum);
  // Another rank has begun its sum of this number. Throws PeerError where that cannot be.
  void announced(Rank from, std::uint64_t number, std::uint64_t elements);

  // No sum that has begun here is under way.
  bool idle() const;
  // The sum that has been under way for longest here, and the ranks that it waits for; none where it is idle.
  struct Awaited {
    std::uint64_t number = 0;
    std::vector<Rank> ranks;
  };
  Awaited awaited() const;

 private:
  // Another rank's part in a sum.
  struct Peer {
    bool announced = false;
    std::uint64_t elements = 0;  // that it announced
    Array<std::int64_t> terms;   // its numbers of this rank's slice
    bool agreed = false;         // it announced as many elements as this rank has
    bool has_my_terms = false;   // it has taken this rank's numbers of its own slice
    bool added = false;          // its terms are part of this rank's sums
    bool here = false;           // its sums have come
  };
  struct Run {
    std::uint64_t number = 0;
    std::shared_ptr<Sum> sum;  // null until it has begun here
    std::vector<Peer> peers;   // by rank
    std::size_t unadded = 0;   // ranks whose terms this one has not added yet
    std::size_t open = 0;      // sums that have not come, or gone, yet
  };
  using RunPtr = std::shared_ptr<Run>;

  RunPtr const& run_of(std::uint64_t number);
  View<std::int64_t> slice(Run const& run, Rank rank) const;
  template <class F>
  void each_other(F f) const;
  void agree(RunPtr const& run, Rank peer);
  void add(RunPtr const& run, Rank peer);
  void take_sums(RunPtr const& run, Rank peer);
  void end_one(RunPtr const& run);
  [[noreturn]] void refuse(Rank peer, std::string const& what) const;

  Rank me_;
  int ranks_;
  Stream& stream_;
  SumCarrier& carrier_;
  std::uint64_t ahead_max_;
  std::uint64_t begun_ = 0;
  std::vector<std::uint64_t> announced_;  // by rank: how many it has begun
  std::map<std::uint64_t, RunPtr> runs_;  // by number; erased when they are done
};

}  // namespace gpups::comm
