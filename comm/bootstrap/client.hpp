// SPDX-License-Identifier: Apache-2.0
// The join as all ranks but 0 see it.
#pragma once

#include "comm/bootstrap/join.hpp"

namespace gpups::comm {

// Blocks until rank 0, at one of launch.hosts, has let all ranks start; as wait_join(). REQUIRES: this is not rank 0.
JoinResult wait_join_bootstrap(JoinRequest const& request);

}  // namespace gpups::comm
