// SPDX-License-Identifier: Apache-2.0
// The processes of a job find each other, and make sure that they belong together, before anything is trained.
//
// Rank 0 listens, all others connect to it. Both sides prove that they know the token (HMAC over nonces of both and
// over all that is said). Rank 0 looks at what each rank says of itself, and either tells everybody who all are, or why
// the job is rejected, with the rank at fault.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/bootstrap/failure_detector.hpp"
#include "comm/bootstrap/keyed_hash.hpp"
#include "comm/bootstrap/launch.hpp"

namespace gpups::comm {

// What a rank tells all others of itself.
struct ProcessInfo {
  std::string host{};     // name, for messages
  std::string machine{};  // ranks with the same one share memory and cores
  std::int64_t pid = 0;
  std::string address{};  // of its transport: bytes that only the transport understands
  std::string cores{};    // that it may run on, as in "0-3,8"
  bool operator==(ProcessInfo const&) const = default;
};

struct JoinRequest {
  LaunchEnvironment launch{};
  ProcessInfo mine{};
  std::string version{};  // of this program; all must have the same
  // What else must be the same on all ranks, by name.
  std::vector<std::pair<std::string, std::string>> must_match{};
  std::string broadcast_data{};  // what rank 0 tells all; others' is ignored
  double timeout_s = 120;        // until all ranks have come
  FailureDetectorOptions failure_detector{};
};

struct JoinResult {
  Rank rank{};                         // as the launcher says
  std::optional<int> local_rank{};     // where it does
  std::vector<ProcessInfo> members{};  // in rank order
  std::uint64_t session = 0;           // the same number on all ranks of this job, and on no other
  std::vector<HashKey> keys{};         // by other rank: what only the two of them, and rank 0, know
  std::string broadcast_data{};        // rank 0's
  std::unique_ptr<FailureDetector> failure_detector{};
};

// Blocks until all ranks are there. REQUIRES: launch.kind is not kAlone.
//
// Throws Error, on every rank that has proved to know the token and names the one at fault: where a rank has another
// version, another value among the settings that must match (both values are shown), another world size, or a number
// that somebody has already; where ranks are missing when the time is over (it lists them). On this rank only: where
// the port is occupied, where the token is not the one of rank 0, where something else than rank 0 listens there. Rank
// 0 keeps waiting when a process with a wrong token, or a stranger, connects, and says so on standard error.
JoinResult wait_join(JoinRequest const& request);

}  // namespace gpups::comm
