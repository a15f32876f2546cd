// SPDX-License-Identifier: Apache-2.0
// The processes of a job find each other, and make sure that they belong together, before anything is trained.
//
// Rank 0 listens, all others connect to it. Both sides prove that they know the token (HMAC over nonces of both and
// over all that is said). Rank 0 looks at what each rank says of itself, and either tells everybody who all are, or why
// the job is refused, with the rank at fault.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/cluster/launch.hpp"
#include "comm/cluster/watch.hpp"
#include "comm/keyed_hash.hpp"

namespace gpups::comm {

// What a rank tells all others of itself.
struct Member {
  std::string host{};     // name, for messages
  std::string machine{};  // ranks with the same one share memory and cores
  std::int64_t pid = 0;
  std::string address{};  // of its transport: bytes that only the transport understands
  std::string cores{};    // that it may run on, as in "0-3,8"
  bool operator==(Member const&) const = default;
};

struct JoinRequest {
  Launch launch{};
  Member mine{};
  std::string version{};  // of this program; all must have the same
  // What else must be the same on all ranks, by name.
  std::vector<std::pair<std::string, std::string>> agreement{};
  std::string announcement{};  // what rank 0 tells all; others' is ignored
  double timeout_s = 120;      // until all ranks have come
  WatchOptions watch{};
};

struct Joined {
  Rank rank{};                      // as the launcher says
  std::optional<int> local_rank{};  // where it does
  std::vector<Member> members{};    // in rank order
  std::uint64_t session = 0;        // the same number on all ranks of this job, and on no other
  std::vector<HashKey> keys{};      // by other rank: what only the two of them, and rank 0, know
  std::string announcement{};       // rank 0's
  std::unique_ptr<Watch> watch{};
};

// Blocks until all ranks are there. REQUIRES: launch.kind is not kAlone.
//
// Throws Error, on every rank that has proved to know the token and names the one at fault: where a rank has another
// version, another value in the agreement (both values are shown), another world size, or a number that somebody has
// already; where ranks are missing when the time is over (it lists them). On this rank only: where the port is
// occupied, where the token is not the one of rank 0, where something else than rank 0 listens there. Rank 0 keeps
// waiting when a process with a wrong token, or a stranger, connects, and says so on standard error.
Joined wait_join(JoinRequest const& request);

}  // namespace gpups::comm
