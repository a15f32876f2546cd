// SPDX-License-Identifier: Apache-2.0
// Puts transfers that go by a lane into one order over all ranks: a receiver that is ready says so to rank 0, which
// makes batches, and tells each rank its parts of them. So no two ranks wait for each other in a circle.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/ucx/carrier.hpp"

namespace gpups::comm {

class Convoy {
 public:
  // A part of a batch, as one rank sees it.
  struct Part {
    Rank peer;
    bool sends;
    std::uint64_t tag;
    bool operator==(Part const&) const = default;
  };
  using Batch = std::vector<Part>;
  // `go` is called by progress() with this rank's parts of a batch, in the order of the batches; `wrong` where a rank
  // has said what cannot be.
  Convoy(std::shared_ptr<UcxCarrier> link, std::function<void(Batch const&)> go,
         std::function<void(Rank, char const*)> wrong);
  ~Convoy();

  // What `from` sends here under `tag` has a place, and both know the same size.
  void ready(Rank from, std::uint64_t tag);
  void progress();

 private:
  struct Ready {
    Rank from, to;
    std::uint64_t tag;
  };
  void ready_came(UcxHeader const& header);
  void go_came(UcxHeader const& header, std::string_view body);
  void tell_all();

  std::shared_ptr<UcxCarrier> const link_;
  std::function<void(Batch const&)> const go_;
  std::function<void(Rank, char const*)> const wrong_;
  std::vector<Ready> ready_;                // rank 0
  std::vector<std::uint64_t> told_;         // rank 0: by rank, batches
  std::uint64_t gone_ = 0;                  // batches that this rank has begun
  std::map<std::uint64_t, Batch> told_of_;  // that it has not; some may have overtaken others
};

}  // namespace gpups::comm
