// SPDX-License-Identifier: Apache-2.0
// PMIx: ranks that mpirun or srun --mpi=pmix has started get their rank, and the address of rank 0, from the launcher.
// MPI in the same process may use PMIx too, before, during or after this.
#pragma once

#include <string>
#include <vector>

#include "comm/bootstrap/launch.hpp"

namespace gpups::comm {

// What rank 0 publishes to the other ranks through the launcher.
struct BootstrapAddress {
  std::vector<std::string> hosts{};
  int port = 0;
  std::string token{};
  std::string machine{};  // ProcessInfo::machine of rank 0
};

// What the launcher knows about this process.
class Pmix {
 public:
  // Gets rank and size from the launcher. Initializes PMIx for the rest of the process: once all its users have
  // finalized it, a later user, such as MPI, does not get all data of the launcher. Throws Error if the launcher fails
  // or this build has no PMIx.
  Pmix();

  Rank rank() const { return rank_; }
  int size() const { return size_; }

  // Returns the value that rank 0 passes as `mine`; `mine` of other ranks is ignored. Every rank calls it once. Blocks
  // until all ranks have. Throws Error if the launcher fails or `timeout_s` is over.
  BootstrapAddress wait_exchange(BootstrapAddress const& mine, double timeout_s);

 private:
  Rank rank_{};
  int size_ = 1;
  std::string job_;  // the name of the job at the launcher
};

}  // namespace gpups::comm
