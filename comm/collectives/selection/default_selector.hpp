// SPDX-License-Identifier: Apache-2.0
// By what a group's selector goes, where nobody says.
#pragma once

#include "comm/collectives/selection/selector.hpp"

namespace gpups::comm {

// Links that are measured, and remembered in the user's cache folder; in a simulation, which must take the same choices
// in every run, links that are assumed.
Selector make_selector(bool simulated);

}  // namespace gpups::comm
