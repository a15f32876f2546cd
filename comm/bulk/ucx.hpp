// SPDX-License-Identifier: Apache-2.0
// Bulk data between processes. What is not small stays with its sender until the receiver asks for it; then it goes
// straight from memory to memory where UCX can do so. From and to memory of a GPU it goes by a fabric where both ranks
// have one, straight where UCX reaches the GPU, else in pieces through the host's. A fabric of all ranks also adds up.
#pragma once

#include <memory>

#include "comm/bulk/bulk_transport.hpp"
#include "comm/bulk/device_fabric.hpp"
#include "comm/ucx/active_messages.hpp"

namespace gpups::comm {

// fabric: of the GPU that this rank uses, as NCCL is, where all ranks have one; null: none.
std::unique_ptr<BulkTransport> make_ucx_bulk_transport(std::shared_ptr<ActiveMessages> ucx,
                                                       std::shared_ptr<DeviceFabric> fabric = nullptr);

}  // namespace gpups::comm
