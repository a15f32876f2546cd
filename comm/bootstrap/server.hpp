// SPDX-License-Identifier: Apache-2.0
// The join as rank 0 sees it.
#pragma once

#include "comm/bootstrap/join.hpp"
#include "comm/bootstrap/socket.hpp"

namespace gpups::comm {

// Blocks until all ranks have connected to the listener and agree, or the job is rejected; as wait_join().
// REQUIRES: this is rank 0.
JoinResult wait_serve_bootstrap(JoinRequest const& request, Listener listener);

}  // namespace gpups::comm
