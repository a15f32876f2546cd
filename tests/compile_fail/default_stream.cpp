// SPDX-License-Identifier: Apache-2.0
// There is no default stream: a Stream needs a device.
#include "gpups/stream.hpp"

#ifdef WRONG
gpups::Stream stream() { return {}; }
#else
gpups::Stream stream(gpups::Device device) { return gpups::Stream(device); }
#endif
