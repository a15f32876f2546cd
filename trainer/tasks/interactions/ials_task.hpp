// SPDX-License-Identifier: Apache-2.0
// Alternating least squares for implicit feedback on one rank (iALS, Hu et al. 2008; Rendle et al. 2022): the score of
// a user and an item is the dot product of their rows, 1 for an item that the user chose, and, with a small weight, 0
// for any. A step solves some rows of one side; see kernels::SolveRows. Their changes are pushed to a table whose
// optimizer adds them, so rows move, and are replicated, as those of any other model.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/step/task.hpp"
#include "trainer/tasks/interactions/interaction_set.hpp"
#include "trainer/tasks/interactions/recommender.hpp"

namespace gpups::trainer {

// The samples of iALS. A sample solves one row, and an epoch solves all users and then all items.

// A user or an item to solve.
struct SolvedRow {
  bool is_item;
  std::uint32_t number;
};

// Items begin with a batch of their own, since they need all new users. The samples before it, if the last batch of
// users is short, are empty.
class IalsSamples {
 public:
  // set: must outlive this object. batch_size: in samples.
  IalsSamples(InteractionSet const& set, std::int64_t batch_size)
      : set_(set),
        batches_of_users_(batches(set.known_users, batch_size)),
        steps_(batches_of_users_ + batches(set.known_items, batch_size)),
        first_item_(static_cast<std::uint64_t>(batches_of_users_ * batch_size)),
        by_item_(transposed(set)) {}

  std::uint64_t count() const { return first_item_ + set_.known_items; }
  std::int64_t steps() const { return steps_; }  // of an epoch
  // Returns the number of the epoch's first step that solves items.
  std::int64_t first_step_of_items() const { return batches_of_users_; }
  // Returns nothing for an empty sample.
  std::optional<SolvedRow> row(std::uint64_t sample) const {
    if (sample >= first_item_) return SolvedRow{true, static_cast<std::uint32_t>(sample - first_item_)};
    if (sample < set_.known_users) return SolvedRow{false, static_cast<std::uint32_t>(sample)};
    return std::nullopt;
  }
  // Returns the training interactions of a row: for an item, `user` is the item and `item` is the user.
  std::span<Interaction const> interactions(SolvedRow row) const {
    return row.is_item ? by_item_.of(row.number) : set_.train.of(row.number);
  }
  // Returns the largest number of interactions of this many consecutive users or items.
  std::uint64_t most_of(std::size_t rows) const { return std::max(set_.train.most_of(rows), by_item_.most_of(rows)); }
  std::uint64_t bytes() const { return by_item_.bytes(); }

 private:
  static std::int64_t batches(std::size_t rows, std::int64_t batch_size) {
    return (static_cast<std::int64_t>(rows) + batch_size - 1) / batch_size;
  }
  static Interactions transposed(InteractionSet const& set);

  InteractionSet const& set_;
  std::int64_t batches_of_users_, steps_;
  std::uint64_t first_item_;
  Interactions by_item_;
};

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
