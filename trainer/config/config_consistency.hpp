// SPDX-License-Identifier: Apache-2.0
// Checks settings that limit each other.
#pragma once

#include <string>

#include "trainer/config/config.hpp"

namespace gpups::trainer {

// Throws Error for settings that contradict each other. name: of the configuration, for messages.
void require_consistent(Config const& config, std::string const& name);

}  // namespace gpups::trainer
