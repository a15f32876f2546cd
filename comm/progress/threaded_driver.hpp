// SPDX-License-Identifier: Apache-2.0
// Turns a rank's protocol in a thread that waits for it, and in a communication thread while none does. Both wait for a
// wakeup event while there is nothing to do.
#pragma once

#include <functional>
#include <memory>

#include "comm/progress/progress_driver.hpp"
#include "comm/progress/wakeup_event.hpp"

namespace gpups::comm {

// cores(): that the rank has for itself; called by each start(). With a single one the communication thread stands back
// for longer after others have turned.
std::unique_ptr<ProgressDriver> make_threaded_driver(
    std::function<std::unique_ptr<WakeupEvent>()> const& make_wakeup_event, std::function<int()> cores);

}  // namespace gpups::comm
