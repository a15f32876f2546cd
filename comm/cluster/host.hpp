// SPDX-License-Identifier: Apache-2.0
// The join as rank 0 sees it.
#pragma once

#include "comm/cluster/join.hpp"
#include "comm/cluster/socket.hpp"

namespace gpups::comm {

// Blocks until all ranks have connected to the listener and agree, or the job is refused; as wait_join().
// REQUIRES: this is rank 0.
Joined wait_host(JoinRequest const& request, Listener listener);

}  // namespace gpups::comm
