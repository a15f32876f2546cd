// SPDX-License-Identifier: Apache-2.0
// Fits a LinkModel over the links that there are, while all ranks use them: in less than 200 ms between a few ranks at
// 1 Gbit/s or more (`bench/goals exchange/fit`). Each sends four times 128 KiB, at least, to all others together.
#pragma once

#include "comm/collective/link_model.hpp"
#include "comm/collective/mesh.hpp"
#include "comm/collective/task.hpp"

namespace gpups::comm {

// A collective. The same on all ranks: of each cost what the slowest rank has.
Task<LinkModel> measure_links(Mesh& mesh);

}  // namespace gpups::comm
