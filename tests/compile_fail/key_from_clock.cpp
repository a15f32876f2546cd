// SPDX-License-Identifier: Apache-2.0
// A clock is not a key.
#include "gpups/types.hpp"

#ifdef WRONG
gpups::Key key = gpups::Clock{3};
#else
gpups::Key key = gpups::Key{3};
#endif
