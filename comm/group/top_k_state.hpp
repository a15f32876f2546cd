// SPDX-License-Identifier: Apache-2.0
// Saves and restores the state of a TopKAllreduce: the residual, the velocity and the state of the selection.
#pragma once

#include <span>
#include <string>

#include "gpups/types.hpp"
#include "kernels/sparse/top_k_feedback.hpp"

namespace gpups::comm {

// Returns the state as bytes.
std::string to_bytes(kernels::TopKFeedback const& feedback);

// Restores the states of an earlier job, in rank order: rank r takes the residuals of ranks r, r + ranks, ... Throws
// Error if there are no states, or one is invalid or of another size; then nothing has changed.
void restore(kernels::TopKFeedback& feedback, std::span<std::string const> of_ranks, Rank me, int ranks);

}  // namespace gpups::comm
