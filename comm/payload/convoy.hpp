// SPDX-License-Identifier: Apache-2.0
// Puts transfers and sums that go by a lane into one order over all ranks: a receiver that is ready says so to rank 0,
// and each rank that is for a sum; rank 0 makes batches, and tells each rank its parts of them. So no two ranks wait
// for each other in a circle.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "comm/ucx/carrier.hpp"

namespace gpups::comm {

class Convoy {
 public:
  // A part of a batch, as one rank sees it. All ranks take part in a sum: it has no peer.
  enum class What : std::uint8_t { kReceive, kSend, kSum };
  struct Part {
    What what;
    Rank peer;
    std::uint64_t tag;
    bool operator==(Part const&) const = default;
  };
  // What is moved goes first, then the sums in their order: so they do on all ranks.
  using Batch = std::vector<Part>;
  // `go` is called by progress() with this rank's parts of a batch, in the order of the batches; `wrong` where a rank
  // has said what cannot be; `wake` when there is something for progress() to do.
  Convoy(std::shared_ptr<UcxCarrier> link, std::function<void(Batch const&)> go,
         std::function<void(Rank, char const*)> wrong, std::function<void()> wake);
  ~Convoy();

  // What `from` sends here under `tag` has a place, and both know the same size.
  void ready(Rank from, std::uint64_t tag);
  // This rank can begin the sum of so many elements that has this tag on all ranks.
  void ready_to_sum(std::uint64_t tag, std::uint64_t elements);
  void progress();

 private:
  struct Ready {
    What what;  // kSum, or kReceive of what `from` sends `to`
    Rank from, to;
    std::uint64_t tag;
  };
  // A sum that some ranks can begin.
  struct Sum {
    std::uint64_t elements;
    std::set<Rank> ranks;
  };
  void ready_came(UcxHeader const& header);
  void sum_ready_came(UcxHeader const& header);
  void add_to_sum(Rank rank, std::uint64_t tag, std::uint64_t elements);
  std::size_t taken_into(std::map<Rank, Batch>& batches) const;
  void go_came(UcxHeader const& header, std::string_view body);
  void tell_some();

  std::shared_ptr<UcxCarrier> const link_;
  std::function<void(Batch const&)> const go_;
  std::function<void(Rank, char const*)> const wrong_;
  std::function<void()> const wake_;
  std::map<std::uint64_t, Sum> sums_;       // rank 0: by tag
  std::vector<std::size_t> sums_ahead_;     // rank 0: of sums_, those that a rank is ready for, by rank
  std::vector<Ready> ready_;                // rank 0
  std::vector<std::uint64_t> told_;         // rank 0: by rank, batches
  std::uint64_t gone_ = 0;                  // batches that this rank has begun
  std::map<std::uint64_t, Batch> told_of_;  // that it has not; some may have overtaken others
};

}  // namespace gpups::comm
