// SPDX-License-Identifier: Apache-2.0
#include "gpups/group.hpp"

namespace gpups {

Group Group::alone() { return threads(1).front(); }

}  // namespace gpups
