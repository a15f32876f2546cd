// SPDX-License-Identifier: Apache-2.0
// Recommends items with the model of a run on interactions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "trainer/run/saved_run.hpp"

namespace gpups::trainer {

// Returns text: for each user, a line with the name and a line for each of the `count` items with the largest scores,
// without those that the user chose in training. Throws Error if the run has no interactions, or training has not seen
// such a user.
std::string recommend_in_run(SavedRun const& run, std::vector<std::string> const& users, std::size_t count);

}  // namespace gpups::trainer
