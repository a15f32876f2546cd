// SPDX-License-Identifier: Apache-2.0
// Bulk data between processes. What is not small stays with its sender until the receiver asks for it; then it goes
// straight from memory to memory where UCX can do so. From and to memory of a GPU it goes by a lane where both ranks
// have one, straight where UCX reaches the GPU, else in pieces through the host's. A lane of all ranks also adds up.
#pragma once

#include <memory>

#include "comm/payload.hpp"
#include "comm/payload/lane.hpp"
#include "comm/ucx/carrier.hpp"

namespace gpups::comm {

// lane: of the GPU that this rank uses, as NCCL is, where all ranks have one; null: none.
std::unique_ptr<Payload> make_ucx_payload(std::shared_ptr<UcxCarrier> link, std::shared_ptr<Lane> lane = nullptr);

}  // namespace gpups::comm
