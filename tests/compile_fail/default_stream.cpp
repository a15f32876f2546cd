// SPDX-License-Identifier: Apache-2.0
// There is no default stream: the order of work is always named.
#include "gpups/stream.hpp"

#ifdef WRONG
gpups::Stream stream() { return {}; }
#else
gpups::Stream stream(gpups::Device device) { return gpups::Stream(device); }
#endif
