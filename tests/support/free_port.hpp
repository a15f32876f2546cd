// SPDX-License-Identifier: Apache-2.0
// A port of the loopback interface on which nobody listens.
#pragma once

#include "comm/bootstrap/socket.hpp"

namespace gpups::test {

inline int free_port() { return comm::Listener(true, 0).port(); }

}  // namespace gpups::test
