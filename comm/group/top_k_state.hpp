// SPDX-License-Identifier: Apache-2.0
// What a rank keeps back of a gradient as bytes, and how other ranks go on from it.
#pragma once

#include <span>
#include <string>

#include "gpups/types.hpp"
#include "kernels/wire/top_k_feedback.hpp"

namespace gpups::comm {

std::string to_bytes(kernels::TopKFeedback const& feedback);

// Of R ranks, in order: rank r of those that go on takes what ranks r, r + ranks, ... kept back. Throws Error where
// there are none, for bytes that are none, or of another size, before anything has changed.
void restore(kernels::TopKFeedback& feedback, std::span<std::string const> of_ranks, Rank me, int ranks);

}  // namespace gpups::comm
