// SPDX-License-Identifier: Apache-2.0
// The name of this machine, for messages.
#pragma once

#include <string>

namespace gpups::comm {

std::string host_name();
// Tells machines apart: ranks with the same one share memory and cores. It stays the same until the machine starts
// anew.
std::string machine_name();

}  // namespace gpups::comm
