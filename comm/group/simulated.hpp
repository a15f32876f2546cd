// SPDX-License-Identifier: Apache-2.0
// For tests of simulated groups.
#pragma once

#include <cstdint>

#include "gpups/group.hpp"

namespace gpups::comm {

// Digest of all events so far in the order in which they happened, messages with their bytes. REQUIRES: a simulated
// group, none of whose ranks is running.
std::uint64_t event_digest(Group const& group);

}  // namespace gpups::comm
