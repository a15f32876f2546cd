// SPDX-License-Identifier: Apache-2.0
// The steps of wait_join(): the addresses of rank 0, and the join as rank 0 (server) or another rank (client) does it.
#pragma once

#include <vector>

#include "comm/bootstrap/join.hpp"
#include "comm/bootstrap/launch.hpp"
#include "comm/bootstrap/socket.hpp"

namespace gpups::comm {

// Returns the addresses at which rank 0 may listen, best first. Retries an unknown host name for some seconds, because
// the container of that name may still be starting. Throws Error if no name can be resolved, and if there is no token
// and none of the addresses belongs to this machine.
std::vector<SocketAddress> wait_bootstrap_addresses(LaunchEnvironment const& launch, TimePoint deadline);

// Blocks until all ranks have connected to the listener and match, or the job is rejected. Throws as wait_join().
// REQUIRES: this is rank 0.
JoinResult wait_serve_bootstrap(JoinRequest const& request, Listener listener);

// Blocks until rank 0, at one of launch.hosts, has started the job or rejected it. Throws as wait_join().
// REQUIRES: this is not rank 0.
JoinResult wait_join_bootstrap(JoinRequest const& request);

}  // namespace gpups::comm
