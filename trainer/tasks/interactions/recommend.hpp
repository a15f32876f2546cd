// SPDX-License-Identifier: Apache-2.0
// Recommends items to users with a trained model.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "trainer/saved/saved_model.hpp"
#include "trainer/tasks/interactions/interaction_data.hpp"

namespace gpups::trainer {

// Returns text: for each user, a line with the name and a line for each of the `count` items with the largest scores,
// without those that the user chose in training. data: of the model's run. Throws Error if training has not seen such a
// user.
std::string recommend_items(SavedModel const& model, InteractionData const& data, std::vector<std::string> const& users,
                            std::size_t count);

}  // namespace gpups::trainer
