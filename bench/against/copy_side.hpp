// SPDX-License-Identifier: Apache-2.0
// What bandwidth is measured against: the C library's copy of a gibibyte, in equal parts by the stream's threads.
#pragma once

#include "bench/against/race.hpp"

namespace gpups::bench {

// Its amount is the bytes read and written.
Side copy_side(Stream& stream);

// The same by reading alone: its amount is the bytes read.
Side read_side(Stream& stream);

}  // namespace gpups::bench
