// SPDX-License-Identifier: Apache-2.0
// Turns a rank's protocol in a thread that waits for it, and in a communication thread while none does. Both sleep by a
// bell while there is nothing to do.
#pragma once

#include <functional>
#include <memory>

#include "comm/bell.hpp"
#include "comm/turner.hpp"

namespace gpups::comm {

// cores(): that the rank has for itself; called by each start(). With a single one the communication thread stands back
// for longer after others have turned.
std::unique_ptr<Turner> make_threaded_turner(std::function<std::unique_ptr<Bell>()> const& make_bell,
                                             std::function<int()> cores);

}  // namespace gpups::comm
