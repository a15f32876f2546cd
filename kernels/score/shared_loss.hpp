// SPDX-License-Identifier: Apache-2.0
// The loss of triples with shared negatives, computed from scores. The scores are replaced by the derivatives of the
// loss.
#pragma once

#include "kernels/score/types.hpp"

namespace gpups::kernels {

struct SharedLoss {
  Algebra algebra;
  float margin = 0;  // of a distance score
  Loss loss;
  std::size_t negatives;                    // of each side
  bool objects_only = false;                // whether subjects have no negatives and no loss
  PickedRows queries;                       // (n): the query for objects of each triple
  PickedRows objects;                       // (n): the row of each triple's object
  View<std::uint32_t const> positive_rows;  // (n, 2): rows of subject and object in the entity table
  View<std::uint32_t const> negative_rows;  // (sides * negatives): for objects, then for subjects
  // (n, negatives): the scores of the negatives for objects and for subjects; replaced by derivatives. With
  // objects_only, of_subjects is not used.
  MatrixView<float> of_objects, of_subjects;
  View<float> slopes;         // (n): the derivative of the loss by the score of the positive
  View<std::int64_t> losses;  // (n), in units of kLossUnit
};
void shared_loss(Stream& stream, SharedLoss const& arguments);

}  // namespace gpups::kernels
