// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/interactions/bpr_task.hpp"

#include <algorithm>

#include "kernels/factor/pairwise_ranking.hpp"
#include "trainer/base/random.hpp"
#include "trainer/tasks/common/row_penalty.hpp"
#include "trainer/tasks/interactions/interaction_kind.hpp"

namespace gpups::trainer {

namespace {

// Returns the item with `rank` smaller ones among those that are not in `chosen`, which is in ascending order.
std::uint32_t not_chosen(std::span<Interaction const> chosen, std::uint32_t rank) {
  std::size_t low = 0, high = chosen.size();  // so many chosen items are smaller
  while (low < high) {
    std::size_t const middle = (low + high) / 2;
    (chosen[middle].item - middle <= rank ? low = middle + 1 : high = middle);
  }
  return rank + static_cast<std::uint32_t>(low);
}

}  // namespace

std::vector<std::uint32_t> NegativeItems::items(Batch const& batch) const {
  std::vector<std::uint32_t> items;
  items.reserve(batch.samples.size() * (1 + negatives_));
  for (std::uint64_t const sample : batch.samples) {
    Interaction const chosen = set_.train[sample];
    items.push_back(chosen.item);
    std::span<Interaction const> const all = set_.train.of(chosen.user);
    RandomBits const random(seed_, batch.epoch, sample);
    for (std::uint32_t k = 0; k < negatives_; ++k) {
      items.push_back(not_chosen(all, static_cast<std::uint32_t>(below(set_.known_items - all.size(), random(k)))));
    }
  }
  return items;
}

namespace {

class BprStep : public TaskStep {
 public:
  BprStep(Stream& stream, std::vector<Key> const& users, std::vector<Key> const& items, std::uint32_t negatives,
          BprTask::BprResults& computed)
      : users_(to_device(stream, users)),
        items_(to_device(stream, items)),
        negatives_(negatives),
        computed_(computed) {}

  std::vector<TableBatch> tables() const override {
    return {{.table = kUsersTable, .keys = users_}, {.table = kItemsTable, .keys = items_}};
  }

  View<std::int64_t const> forward_backward(Stream& stream, PreparedBatch const& prepared,
                                            std::span<MatrixView<float const> const> rows) override {
    std::size_t const samples = users_.size(), entries = items_.size();
    if (computed_.losses.size() < samples) {
      stream.wait();
      computed_ = {.user_gradients = Matrix<float>(stream.device(), samples, rows[0].columns()),
                   .users_of_items = Array<std::uint32_t>(stream.device(), entries),
                   .slopes = Array<float>(stream.device(), entries),
                   .losses = Array<std::int64_t>(stream.device(), samples)};
    }
    auto const user_gradients = computed_.user_gradients.view().slice(0, samples);
    auto const users_of_items = computed_.users_of_items.view().slice(0, entries);
    auto const slopes = computed_.slopes.view().slice(0, entries);
    auto const losses = computed_.losses.view().slice(0, samples);
    kernels::pairwise_ranking(stream, {.users = rows[0],
                                       .items = rows[1],
                                       .user_rows = prepared.positions(0),
                                       .item_rows = prepared.positions(1),
                                       .negatives = negatives_,
                                       .user_gradients = user_gradients,
                                       .users_of_items = users_of_items,
                                       .slopes = slopes,
                                       .losses = losses});
    gradients_ = {{.sources = user_gradients},
                  {.sources = rows[0], .source_indices = users_of_items, .coefficients = slopes}};
    return losses;
  }

  std::vector<TableGradients> gradients() const override { return gradients_; }

 private:
  Array<Key> users_, items_;
  std::uint32_t negatives_;
  BprTask::BprResults& computed_;
  std::vector<TableGradients> gradients_;
};

// Returns the tables. A user is in a sample for each of the user's items; an item is in those of its users, and a
// negative of samples at random.
std::vector<TableOptions> bpr_tables(InteractionSet const& set, Config const& config, std::int64_t schedule_steps) {
  auto tables = recommender_tables(set, config, schedule_steps);
  auto const samples = static_cast<double>(set.train.size()), batch = static_cast<double>(config.train.batch_size);
  auto const& settings = config.settings<InteractionSettings>();
  double const as_negative = samples * static_cast<double>(settings.negatives) /
                             static_cast<double>(std::max<std::size_t>(1, set.known_items));
  std::vector<double> users(set.known_users), items(set.known_items, as_negative);
  for (Interaction const& pair : set.train.pairs()) {
    ++users[pair.user];
    ++items[pair.item];
  }
  double const l2 = is_used(config, "model.l2") ? settings.l2 : 0;
  tables[number(kItemsTable)].optimizer.l2 += l2_of_updates(l2, items, samples, batch);
  tables[number(kUsersTable)].optimizer.l2 += l2_of_updates(l2, users, samples, batch);
  return tables;
}

}  // namespace

BprTask::BprTask(InteractionSet const& set, Config const& config, std::int64_t schedule_steps)
    : Recommender(set, config, bpr_tables(set, config, schedule_steps)),
      negatives_of_each_(static_cast<std::uint32_t>(config.settings<InteractionSettings>().negatives)),
      negatives_(set, negatives_of_each_, static_cast<std::uint64_t>(config.train.seed)) {}

std::unique_ptr<TaskStep> BprTask::prepare(Stream& stream, Batch const& batch) {
  std::vector<Key> users, items;
  users.reserve(batch.samples.size());
  for (std::uint64_t const sample : batch.samples) users.push_back(set().users.keys()[set().train[sample].user]);
  for (std::uint32_t const item : negatives_.items(batch)) items.push_back(set().items.keys()[item]);
  return std::make_unique<BprStep>(stream, users, items, negatives_of_each_, computed_);
}

std::uint64_t bpr_step_bytes(Config const& config, std::size_t samples) {
  std::size_t const entries = samples * static_cast<std::size_t>(1 + config.settings<InteractionSettings>().negatives);
  return samples * (row_stride(static_cast<std::size_t>(config.model.dim)) * sizeof(float) + sizeof(std::int64_t)) +
         entries * (sizeof(std::uint32_t) + sizeof(float));
}

}  // namespace gpups::trainer
