// SPDX-License-Identifier: Apache-2.0
// Returns a free port of the loopback interface.
#pragma once

#include "comm/bootstrap/socket.hpp"

namespace gpups::test {

inline int free_port() { return comm::Listener(true, 0).port(); }

}  // namespace gpups::test
