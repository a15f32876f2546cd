// SPDX-License-Identifier: Apache-2.0
// Bulk data between processes. What is not small stays with its sender until the receiver asks for it; then it goes
// straight from memory to memory where UCX can do so. Memory of a GPU is staged through the host's.
#pragma once

#include <memory>

#include "comm/payload.hpp"
#include "comm/ucx/carrier.hpp"

namespace gpups::comm {

std::unique_ptr<Payload> make_ucx_payload(std::shared_ptr<UcxCarrier> link);

}  // namespace gpups::comm
