// SPDX-License-Identifier: Apache-2.0
// Alternating least squares for implicit feedback on one rank (iALS, Hu et al. 2008; Rendle et al. 2022): the score of
// a user and an item is the dot product of their rows, 1 for an item that the user chose, and, with a small weight, 0
// for any. A step solves some rows of one side; see kernels::SolveRows. Their changes are pushed to a table whose
// optimizer adds them, so rows move, and are replicated, as those of any other model.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "trainer/step/task.hpp"
#include "trainer/tasks/interactions/ials_samples.hpp"
#include "trainer/tasks/interactions/recommender.hpp"

namespace gpups::trainer {

// Returns the tables: as recommender_tables(), with an optimizer that adds what is pushed.
std::vector<TableOptions> ials_tables(InteractionSet const& set, Config const& config);
// Returns the bytes of a step's results, for `rows` rows with `interactions` interactions.
std::uint64_t ials_step_bytes(Config const& config, std::size_t rows, std::size_t interactions);

// Returns the bytes of the Gramian of a side and of its computation.
std::uint64_t gramian_bytes(Config const& config);

// The task of one rank.
class IalsTask : public Recommender {
 public:
  // The arguments must outlive this object.
  IalsTask(InteractionSet const& set, IalsSamples const& samples, Config const& config);

  std::unique_ptr<TaskStep> prepare(Stream& stream, Batch const& batch) override;
  // Computes the Gramian of the side that the next steps read, when they begin to solve the other side.
  void wait_before_step(Stream& stream, Store& store, Clock clock) override;

  // What steps share; the arrays are reused in later steps.
  struct Shared {
    float unobserved_weight, l2;
    Matrix<float> gramian;  // of the side that is not solved, times unobserved_weight
    Matrix<float> changes, scratch, zero;
    Array<std::int64_t> losses;
  };

 private:
  IalsSamples const& samples_;
  Shared shared_;
  std::optional<bool> solves_items_;  // the side of the last step
};

}  // namespace gpups::trainer
