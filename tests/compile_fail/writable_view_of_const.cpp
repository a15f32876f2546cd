// SPDX-License-Identifier: Apache-2.0
// A read-only view does not convert to a writable one.
#include "gpups/array.hpp"

#ifdef WRONG
gpups::View<float> view(gpups::View<float const> from) { return from; }
#else
gpups::View<float const> view(gpups::View<float> from) { return from; }
#endif
