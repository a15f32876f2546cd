// SPDX-License-Identifier: Apache-2.0
// Sleeps until UCX has something to do, or somebody rings.
#pragma once

#include <memory>

#include "comm/progress/wakeup_event.hpp"

struct ucp_worker;

namespace gpups::comm {

class UcxWorker;

// The link must outlive it.
std::unique_ptr<WakeupEvent> make_ucx_wakeup_event(UcxWorker& ucx, ucp_worker* worker);

}  // namespace gpups::comm
