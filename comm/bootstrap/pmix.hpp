// SPDX-License-Identifier: Apache-2.0
// PMIx: ranks that mpirun or srun --mpi=pmix has started get their rank, and the address of rank 0, from the launcher.
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

// A PMIx session of this process.
class Pmix {
 public:
  // Gets rank and size from the launcher. Throws Error if the launcher fails or this build has no PMIx.
  Pmix();
  ~Pmix();
  Pmix(Pmix const&) = delete;
  Pmix& operator=(Pmix const&) = delete;

  Rank rank() const { return rank_; }
  int size() const { return size_; }
  int local_rank() const { return local_rank_; }

  // Returns the value that rank 0 passes as `mine`; `mine` of other ranks is ignored. Every rank calls it once. Blocks
  // until all ranks have, and ends the session. Throws Error if the launcher fails or `timeout_s` is over.
  BootstrapAddress wait_exchange(BootstrapAddress const& mine, double timeout_s);

 private:
  Rank rank_{};
  int size_ = 1;
  int local_rank_ = 0;
  std::string job_;  // the name of the job at the launcher
  bool open_ = false;
};

}  // namespace gpups::comm
