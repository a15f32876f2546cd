// SPDX-License-Identifier: Apache-2.0
// What started this process, as its environment says, and where the ranks of the job meet.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpups/types.hpp"

namespace gpups::comm {

struct LaunchEnvironment {
  // kEnvironment: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun and Kubernetes set them. kPmix: mpirun or
  // srun --mpi=pmix.
  enum class Kind { kAlone, kEnvironment, kPmix };

  Kind kind = Kind::kAlone;
  Rank rank{};
  int size = 1;                     // 0: only the launcher knows, and says it in the join; of kPmix only
  std::optional<int> local_rank{};  // where the launcher says
  // Where rank 0 listens: hosts or addresses to try, best first. With kPmix both are empty or 0 until ranks have met,
  // and rank 0 takes any free port.
  std::vector<std::string> hosts{};
  int port = 0;
  std::string token{};  // never shown. Empty: none, and ranks meet on the loopback interface only
};

// Under torchrun (TORCHELASTIC_RUN_ID), which may run inside of a step of srun, RANK and WORLD_SIZE win over PMIx. Else
// PMIx counts, and where both are there they must say the same. A job of one is alone, whoever started it.
//
// Reads the environment; starts nothing. Throws Error where it contradicts itself or has no sense, naming the variable:
// RANK without WORLD_SIZE, RANK that PMIx contradicts, a rank that is not below the size, a port that is no port, a
// token file that cannot be read; and where a launcher has started several processes without PMIx, which would all take
// themselves for alone.
//
// GPUPS_TOKEN_FILE names a file with the token, GPUPS_TOKEN is the token itself; GPUPS_PORT wins over MASTER_PORT
// (where the launcher itself listens there, as torchrun does).
LaunchEnvironment detect_launch();

}  // namespace gpups::comm
