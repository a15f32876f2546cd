// SPDX-License-Identifier: Apache-2.0
// Turns a rank's protocol in a communication thread, which sleeps while there is nothing to do.
#pragma once

#include <memory>

#include "comm/turner.hpp"

namespace gpups::comm {

std::unique_ptr<Turner> make_threaded_turner();

}  // namespace gpups::comm
