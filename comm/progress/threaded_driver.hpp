// SPDX-License-Identifier: Apache-2.0
// The progress driver for real transports: a thread that waits makes progress, and a communication thread does while no
// thread waits. Both sleep on a wakeup event while there is nothing to do.
#pragma once

#include <functional>
#include <memory>

#include "comm/base/wakeup.hpp"
#include "comm/progress/progress_driver.hpp"

namespace gpups::comm {

// cores(): returns the number of cores that the rank has for itself; called by each start(). With one core the
// communication thread backs off for longer.
std::unique_ptr<ProgressDriver> make_threaded_driver(
    std::function<std::unique_ptr<WakeupEvent>()> const& make_wakeup_event, std::function<int()> cores);

}  // namespace gpups::comm
