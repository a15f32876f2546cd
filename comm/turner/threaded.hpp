// SPDX-License-Identifier: Apache-2.0
// Turns a rank's protocol in a communication thread, which sleeps by a bell while there is nothing to do.
#pragma once

#include <memory>

#include "comm/bell.hpp"
#include "comm/turner.hpp"

namespace gpups::comm {

// For ranks that hear of everything by wake().
std::unique_ptr<Turner> make_threaded_turner();
// For ranks to which things come over a network.
std::unique_ptr<Turner> make_threaded_turner(std::unique_ptr<Bell> bell);

}  // namespace gpups::comm
