// SPDX-License-Identifier: Apache-2.0
// The names of this machine.
#pragma once

#include <string>

namespace gpups::comm {

// Returns the host name, for error texts; "unknown" if the system gives none.
std::string host_name();
// Returns an id of this machine. Ranks with equal ids share memory and cores. The id is constant until the next boot.
std::string machine_name();

}  // namespace gpups::comm
