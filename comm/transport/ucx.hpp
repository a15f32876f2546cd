// SPDX-License-Identifier: Apache-2.0
// Messages between processes. A receiver says how many it has taken, so that no more than a bounded number is under
// way.
#pragma once

#include <memory>

#include "comm/bootstrap/failure_detector.hpp"
#include "comm/transport/transport.hpp"
#include "comm/ucx/active_messages.hpp"

namespace gpups::comm {

// watch: says who is lost; null: only what ranks say themselves when they leave.
std::unique_ptr<Transport> make_ucx_transport(std::shared_ptr<ActiveMessages> ucx,
                                              std::shared_ptr<FailureDetector> failure_detector);

}  // namespace gpups::comm
