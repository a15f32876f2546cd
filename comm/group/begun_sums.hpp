// SPDX-License-Identifier: Apache-2.0
// The sums that a rank has begun: each has a place, of which there are few, until it has been waited for. One that
// nobody can wait for any more has it until it has ended.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace gpups::comm {

struct Collective;

// For the thread that begins sums.
class BegunSums {
 public:
  // Keep what it gives until the sum has been waited for: who has it may wait.
  std::shared_ptr<void const> add(std::shared_ptr<Collective> const& sum);
  void remove(Collective const& sum);  // it has been waited for

  // How many have a place. Those that have ended, and that nobody can wait for, give theirs back here.
  std::size_t count();
  // The first that nobody can wait for; null: there is none.
  std::shared_ptr<Collective> abandoned() const;

 private:
  struct Begun {
    std::weak_ptr<Collective> sum;
    std::weak_ptr<void const> owner;
  };
  std::vector<Begun> all_;
};

}  // namespace gpups::comm
