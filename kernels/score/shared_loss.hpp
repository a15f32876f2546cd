// SPDX-License-Identifier: Apache-2.0
// The loss of triples against negatives that they share, from scores; scores become the derivatives of the loss.
#pragma once

#include "kernels/score/types.hpp"

namespace gpups::kernels {

struct SharedLoss {
  Algebra algebra;
  float margin = 0;  // of a distance
  Loss loss;
  std::size_t negatives;                      // of each side
  PickedRows queries;                         // (n): the query for objects of each triple
  PickedRows objects;                         // (n): the rows of their objects
  View<std::uint32_t const> positive_rows;    // (n, 2): rows of subject and object in the entity table
  View<std::uint32_t const> negative_rows;    // (2 * negatives): for objects, then for subjects
  MatrixView<float> of_objects, of_subjects;  // (n, negatives)
  View<float> slopes;                         // (n): derivative of the loss by the positive's score
  View<std::int64_t> losses;                  // (n), in units of kLossUnit
};
void shared_loss(Stream& stream, SharedLoss const& arguments);

}  // namespace gpups::kernels
