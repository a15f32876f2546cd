// SPDX-License-Identifier: Apache-2.0
// Looks, in a thread of its own, after who of the job is still there, whatever else the ranks are doing.
//
// Every rank keeps the connection to rank 0 by which it joined, and both ends say regularly that they are there. A
// process that ends closes its connection at once; one that hangs, and one whose link is cut, falls silent. Rank 0
// tells all others. What is said is authenticated by a key that the join made.
#pragma once

#include <functional>
#include <string>

#include "gpups/types.hpp"

namespace gpups::comm {

struct FailureDetectorOptions {
  double peer_timeout_s = 30;  // how long a rank may be silent before it is taken for lost
};

class FailureDetector {
 public:
  struct Events {
    // A rank is gone without having left regularly; why, in words without its number: "its process ended". Once for
    // each rank. When rank 0 is gone nobody is told of others any more.
    std::function<void(Rank rank, std::string const& why)> lost;
    // A rank has left regularly. Once for each rank.
    std::function<void(Rank rank)> left;
  };

  virtual ~FailureDetector() = default;  // ends the thread and closes the connections; never blocks for long

  // From now on these are called, one at a time, from the watch's thread; what has happened since the join too.
  // What was listening before is called no more. REQUIRES: not called by it.
  virtual void subscribe(Events events) = 0;

  // Tells all that this rank leaves: regularly where `why` is empty, else because of `at_fault`, which may be this rank
  // or one that it has lost. The first call counts, but an error after a regular end does too. Any thread; does not
  // block.
  virtual void leave(Rank at_fault, std::string const& why) = 0;

  // Blocks until all others have left or are lost, or the time is over; says whether they have. A rank stays until then
  // after a regular end, so that what it has sent last arrives.
  virtual bool wait_all_left(double timeout_s) = 0;
};

}  // namespace gpups::comm
