// SPDX-License-Identifier: Apache-2.0
// What every rank has to say in one number, so that all decide the same.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/collective/mesh.hpp"
#include "comm/collective/task.hpp"

namespace gpups::comm {

// The numbers, by rank.
Task<std::vector<std::uint64_t>> gather_number(Mesh& mesh, std::uint64_t mine);

}  // namespace gpups::comm
