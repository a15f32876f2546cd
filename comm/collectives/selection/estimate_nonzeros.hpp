// SPDX-License-Identifier: Apache-2.0
// About how many elements of a long array are not zero, by a look at a few of them.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::comm {

// values: (n). Reads some 2000 of them, at places that the seed decides, in a microsecond or two. Exact where there are
// no more. REQUIRES: values on the host.
std::uint64_t estimate_nonzeros(View<float const> values, std::uint64_t seed);

}  // namespace gpups::comm
