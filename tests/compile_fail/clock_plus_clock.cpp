// SPDX-License-Identifier: Apache-2.0
// A number of steps can be added to a clock, but not another clock.
#include "gpups/types.hpp"

#ifdef WRONG
auto sum(gpups::Clock a, gpups::Clock b) { return a + b; }
#else
auto sum(gpups::Clock a, std::int64_t steps) { return a + steps; }
#endif
