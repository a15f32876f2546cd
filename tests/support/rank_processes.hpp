// SPDX-License-Identifier: Apache-2.0
// Starts the ranks of a job as processes on this machine, which a test can stop and kill.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "tests/support/free_port.hpp"

namespace gpups::test {

// Starts the processes and returns their ids in rank order. A process exits with 0 if `body` returns, otherwise with 1.
inline std::vector<pid_t> start_ranks(int ranks, JoinOptions const& options,
                                      std::function<void(Group const&)> const& body) {
  int const port = free_port();
  std::vector<pid_t> pids;
  for (int rank = 0; rank < ranks; ++rank) {
    pid_t const pid = fork();
    if (pid != 0) {
      pids.push_back(pid);
      continue;
    }
    ::setenv("RANK", std::to_string(rank).c_str(), 1);
    ::setenv("WORLD_SIZE", std::to_string(ranks).c_str(), 1);
    ::setenv("MASTER_ADDR", "127.0.0.1", 1);
    ::setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
    try {
      body(Group::join(options));
      _exit(0);
    } catch (std::exception const& error) {
      std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
      _exit(1);
    }
  }
  return pids;
}

// Waits for the process to end. Returns whether its exit status is 0.
inline bool wait_success(pid_t pid) {
  int status = 0;
  return waitpid(pid, &status, 0) == pid && status == 0;
}

}  // namespace gpups::test
