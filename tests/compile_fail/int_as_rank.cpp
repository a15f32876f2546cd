// SPDX-License-Identifier: Apache-2.0
// An integer is not a rank.
#include "gpups/error.hpp"

#ifdef WRONG
gpups::PeerError error(3, "lost");
#else
gpups::PeerError error(gpups::Rank{3}, "lost");
#endif
