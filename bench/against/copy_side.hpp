// SPDX-License-Identifier: Apache-2.0
// What bandwidth is measured against: copies of a gibibyte, by the C library in equal parts by the stream's threads, or
// on a GPU by its copy engine.
#pragma once

#include "bench/against/race.hpp"

namespace gpups::bench {

// Its amount is the bytes read and written.
Side copy_side(Stream& stream);

// The same by reading alone: its amount is the bytes read. REQUIRES: a host stream.
Side read_side(Stream& stream);

}  // namespace gpups::bench
