// SPDX-License-Identifier: Apache-2.0
// Returns a free port of this machine.
#pragma once

#include <random>

#include "comm/bootstrap/socket.hpp"
#include "gpups/error.hpp"

namespace gpups::test {

// Below the ports that systems give to outgoing connections: one of those could take the port before its server does.
inline int free_port() {
  std::random_device random;
  for (;;) {
    int const port = std::uniform_int_distribution(10'000, 32'000)(random);
    try {
      return comm::Listener(false, port).port();
    } catch (Error const&) {  // NOLINT: it is occupied
    }
  }
}

}  // namespace gpups::test
