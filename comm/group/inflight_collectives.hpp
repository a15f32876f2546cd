// SPDX-License-Identifier: Apache-2.0
// The collectives that a rank has started. Each uses one of a few places until it has been waited for. An abandoned
// one, whose request was destroyed, uses its place until it has ended.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace gpups::comm {

struct CollectiveTask;

// Used by the thread that starts collectives.
class InflightCollectives {
 public:
  // Adds a collective and returns its owner: keep it until the collective has been waited for. Without its owner, a
  // collective is abandoned.
  std::shared_ptr<void const> add(std::shared_ptr<CollectiveTask> const& collective);
  void remove(CollectiveTask const& collective);  // after it has been waited for

  // Returns the number of places in use, after it has freed those of abandoned collectives that have ended.
  std::size_t count();
  // Returns the first abandoned collective; null if there is none.
  std::shared_ptr<CollectiveTask> abandoned() const;

 private:
  struct Inflight {
    std::weak_ptr<CollectiveTask> collective;
    std::weak_ptr<void const> owner;
  };
  std::vector<Inflight> all_;
};

}  // namespace gpups::comm
