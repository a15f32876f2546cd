// SPDX-License-Identifier: Apache-2.0
// The processes of a job connect over TCP and check that they belong together, before anything is trained.
//
// Rank 0 listens and all other ranks connect to it. Both sides prove that they have the token (HMAC over the nonces of
// both and over every frame). Rank 0 checks the rank info of each rank. Then it sends to all ranks either the list of
// members or the reason why the job is rejected, which includes the rank at fault.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/bootstrap/authentication.hpp"
#include "comm/bootstrap/failure_detector.hpp"
#include "comm/bootstrap/launch.hpp"
#include "comm/bootstrap/socket.hpp"

namespace gpups::comm {

// What each rank sends to all others about its process.
struct ProcessInfo {
  std::string host{};     // for error texts
  std::string machine{};  // ranks with equal values share memory and cores
  std::int64_t pid = 0;
  std::string address{};    // of its transport, in the format of that transport
  std::string cores{};      // the cores on which it may run, such as "0-3,8"
  std::string near_gpus{};  // the cores near each GPU that it sees, see cores_near_gpus()
  bool operator==(ProcessInfo const&) const = default;
};

// What a rank needs in order to join.
struct JoinRequest {
  LaunchEnvironment launch{};
  ProcessInfo mine{};
  std::string group{};    // the name of the group; ranks with other names do not join it
  std::string version{};  // of this program; equal on all ranks
  // Other values that must be equal on all ranks: name, value.
  std::vector<std::pair<std::string, std::string>> must_match{};
  std::string broadcast_data{};  // rank 0 sends it to all ranks; ignored on other ranks
  double timeout_s = 120;        // until all ranks have joined
  FailureDetectorOptions failure_detector{};
};

// What a rank knows once all ranks have joined.
struct JoinResult {
  Rank rank{};                         // from the launcher
  std::optional<int> local_rank{};     // if the launcher gives it
  std::vector<ProcessInfo> members{};  // in rank order
  std::uint64_t session = 0;           // equal on all ranks of this job; other jobs have other numbers
  std::vector<HashKey> keys{};         // keys[r]: the pair key with rank r, known to rank 0 as well
  std::string broadcast_data{};        // from rank 0
  std::unique_ptr<FailureDetector> failure_detector{};
};

// Blocks until all ranks have joined. REQUIRES: launch.kind is not kAlone.
//
// Throws Error on every authenticated rank, with the rank at fault, if a rank has another version, another value of a
// setting that must match (the text shows both values), another world size or the number of another rank, and if ranks
// are missing after `timeout_s` (the text lists them). Throws Error on this rank only if the port is occupied, if its
// token differs from that of rank 0, or if the listener at the address is not rank 0. If a process with a wrong token
// or a foreign process connects, rank 0 prints that to standard error and keeps waiting.
//
// A job can have several groups, also with equal names, one after another. Groups with different names may be joined by
// several threads in any order: rank 0 listens for one group at a time, and the ranks of others wait for their turn.
JoinResult wait_join(JoinRequest const& request);

// -- the steps of wait_join() --

// Returns the addresses at which rank 0 may listen, best first. Retries an unknown host name for some seconds, because
// the container of that name may still be starting. Throws Error if no name can be resolved, and if there is no token
// and none of the addresses belongs to this machine.
std::vector<SocketAddress> wait_bootstrap_addresses(LaunchEnvironment const& launch, TimePoint deadline);

// Blocks until all ranks have connected to the listener and match, or the job is rejected, at `deadline` at the latest.
// Throws as wait_join(). REQUIRES: this is rank 0.
JoinResult wait_serve_bootstrap(JoinRequest const& request, Listener listener, TimePoint deadline);

// Blocks until rank 0, at one of launch.hosts, has started the job or rejected it. Throws as wait_join().
// REQUIRES: this is not rank 0.
JoinResult wait_join_bootstrap(JoinRequest const& request);

}  // namespace gpups::comm
