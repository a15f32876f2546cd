// SPDX-License-Identifier: Apache-2.0
// The sums that a rank has begun: each has a place, of which there are few, until it has been waited for. One that
// nobody can wait for any more has it until it has ended.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace gpups::comm {

struct CollectiveTask;

// For the thread that begins sums.
class InflightCollectives {
 public:
  // Keep what it gives until the sum has been waited for: who has it may wait.
  std::shared_ptr<void const> add(std::shared_ptr<CollectiveTask> const& collective);
  void remove(CollectiveTask const& collective);  // it has been waited for

  // How many have a place. Those that have ended, and that nobody can wait for, give theirs back here.
  std::size_t count();
  // The first that nobody can wait for; null: there is none.
  std::shared_ptr<CollectiveTask> abandoned() const;

 private:
  struct Inflight {
    std::weak_ptr<CollectiveTask> collective;
    std::weak_ptr<void const> owner;
  };
  std::vector<Inflight> all_;
};

}  // namespace gpups::comm
