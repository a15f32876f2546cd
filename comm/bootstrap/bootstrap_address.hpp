// SPDX-License-Identifier: Apache-2.0
// Where ranks meet: the addresses to try, and who may connect.
#pragma once

#include <string>
#include <vector>

#include "comm/bootstrap/launch.hpp"
#include "comm/bootstrap/socket.hpp"

namespace gpups::comm {

// Where rank 0 may listen, best first. A name that is not known yet is asked for again for some seconds, as it may be
// that of a container that is just being started. Throws Error where no name is known, and where there is no token and
// none of the addresses is this machine's.
std::vector<SocketAddress> wait_bootstrap_addresses(LaunchEnvironment const& launch, TimePoint deadline);

}  // namespace gpups::comm
