// SPDX-License-Identifier: Apache-2.0
// Checks the list of a sparse vector that a caller gives, before anything of it is sent or summed.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::comm {

// Throws Error unless the indices are ascending, each once, and below the size. REQUIRES: they are on the host.
void check_indices(std::uint64_t size, View<std::uint32_t const> indices);
// The same for a list that is made streams of, all its parts before any is sent: that finds what is not ascending, and
// is told here where the last of the parts ends.
void check_last_index(std::uint64_t size, View<std::uint32_t const> indices);

}  // namespace gpups::comm
