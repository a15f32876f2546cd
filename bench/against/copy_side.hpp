// SPDX-License-Identifier: Apache-2.0
// The reference for bandwidth: a copy of 1 GiB, by memcpy() in equal parts on the stream's threads, or on a GPU by its
// copy engine.
#pragma once

#include "bench/against/race.hpp"

namespace gpups::bench {

// The amount is the number of bytes read and written.
Side copy_side(Stream& stream);

// Only reads; the amount is the number of bytes read. REQUIRES: a host stream.
Side read_side(Stream& stream);

}  // namespace gpups::bench
