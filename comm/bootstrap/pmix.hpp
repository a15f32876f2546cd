// SPDX-License-Identifier: Apache-2.0
// Ranks that mpirun or srun --mpi=pmix has started learn from it who they are, and where rank 0 is.
#pragma once

#include <string>
#include <vector>

#include "comm/bootstrap/launch.hpp"

namespace gpups::comm {

// What rank 0 tells the others through the launcher.
struct BootstrapAddress {
  std::vector<std::string> hosts{};
  int port = 0;
  std::string token{};
  std::string machine{};  // ProcessInfo::machine of rank 0
};

class Pmix {
 public:
  // Asks the launcher who this process is. Throws Error where it does not answer or this build has no PMIx.
  Pmix();
  ~Pmix();
  Pmix(Pmix const&) = delete;
  Pmix& operator=(Pmix const&) = delete;

  Rank rank() const { return rank_; }
  int size() const { return size_; }
  int local_rank() const { return local_rank_; }

  // All ranks call this once; `mine` counts on rank 0 only. Blocks until all have, and leaves PMIx.
  BootstrapAddress wait_exchange(BootstrapAddress const& mine, double timeout_s);

 private:
  Rank rank_{};
  int size_ = 1;
  int local_rank_ = 0;
  std::string job_;  // its name at the launcher
  bool open_ = false;
};

}  // namespace gpups::comm
