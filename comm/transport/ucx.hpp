// SPDX-License-Identifier: Apache-2.0
// Messages between processes. A receiver says how many it has taken, so that no more than a bounded number is under
// way.
#pragma once

#include <memory>

#include "comm/cluster/watch.hpp"
#include "comm/transport.hpp"
#include "comm/ucx/carrier.hpp"

namespace gpups::comm {

// watch: says who is lost; null: only what ranks say themselves when they leave.
std::unique_ptr<Transport> make_ucx_transport(std::shared_ptr<UcxCarrier> link, std::shared_ptr<Watch> watch);

}  // namespace gpups::comm
