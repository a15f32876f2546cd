// SPDX-License-Identifier: Apache-2.0
// Reads from the environment which launcher started this process, and where rank 0 listens.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpups/types.hpp"

namespace gpups::comm {

// What the launcher gives this process.
struct LaunchEnvironment {
  // kEnvironment: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set, as torchrun and Kubernetes do. kPmix: the
  // process was started by mpirun or srun --mpi=pmix.
  enum class Kind { kAlone, kEnvironment, kPmix };

  Kind kind = Kind::kAlone;
  Rank rank{};
  int size = 1;                     // 0: not known before the join; with kPmix only
  std::optional<int> local_rank{};  // if the launcher gives it
  // Where rank 0 listens: host names or addresses to try, best first. With kPmix, hosts and port are empty and 0 until
  // the ranks have exchanged them, and rank 0 uses any free port.
  std::vector<std::string> hosts{};
  int port = 0;
  std::string token{};  // never printed. Empty: no token; then ranks connect over the loopback interface only
};

// Returns what the environment says about the launch. Reads the environment; starts nothing.
//
// Under torchrun (TORCHELASTIC_RUN_ID is set), also inside of a step of srun, RANK and WORLD_SIZE take precedence over
// PMIx. PMIx counts only if a launcher has started it, and not if MPI_Init() has, for this process alone. Otherwise
// PMIx takes precedence, and RANK and WORLD_SIZE, if they are set, must agree with it. A job of one rank is kAlone,
// whatever started it.
//
// Throws Error with the name of the variable if variables are invalid or contradict each other: RANK without
// WORLD_SIZE, RANK that differs from PMIx, a rank that is not below the size, an invalid port, or a token file that
// cannot be read. Throws Error, too, if a launcher has started several processes without PMIx, because each would train
// alone.
//
// GPUPS_TOKEN_FILE is the path of a file that holds the token; GPUPS_TOKEN is the token itself. GPUPS_PORT takes
// precedence over MASTER_PORT, on which a launcher such as torchrun may listen itself.
LaunchEnvironment detect_launch();

}  // namespace gpups::comm
