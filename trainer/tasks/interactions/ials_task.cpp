// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/interactions/ials_task.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/factor/solve_rows.hpp"
#include "trainer/config/table_settings.hpp"
#include "trainer/tasks/common/nearest.hpp"
#include "trainer/tasks/interactions/interaction_kind.hpp"

namespace gpups::trainer {

Interactions IalsSamples::transposed(InteractionSet const& set) {
  std::vector<Interaction> pairs;
  pairs.reserve(set.train.size());
  for (Interaction const& pair : set.train.pairs()) pairs.push_back({pair.item, pair.user});
  std::stable_sort(pairs.begin(), pairs.end(), [](auto const& a, auto const& b) { return a.user < b.user; });
  return {std::move(pairs), set.known_items};
}

namespace {

constexpr std::size_t kRowsTogether = 8 * kernels::kGramianRows;  // for any number of ranks

// The entries of a step.
struct Solved {
  bool items = false;  // the side that is solved
  std::vector<Key> keys, others;
  std::vector<std::uint32_t> offsets{0};  // into `others`, for each key
};

class IalsStep : public TaskStep {
 public:
  IalsStep(Stream& stream, Solved const& solved, std::size_t others, std::uint32_t batch_samples,
           IalsTask::Shared& shared)
      : solves_items_(solved.items),
        keys_(to_device(stream, solved.keys)),
        others_(to_device(stream, solved.others)),
        offsets_(to_device(stream, solved.offsets)),
        zeros_(to_device(stream, std::vector<std::uint32_t>(solved.others.size()))),
        unobserved_(shared.unobserved_weight * static_cast<float>(others)),
        batch_samples_(batch_samples),
        shared_(shared) {}

  std::vector<TableBatch> tables() const override {
    return {{.table = solves_items_ ? kItemsTable : kUsersTable, .keys = keys_},
            {.table = solves_items_ ? kUsersTable : kItemsTable, .keys = others_}};
  }

  View<std::int64_t const> forward_backward(Stream& stream, PreparedBatch const& prepared,
                                            std::span<MatrixView<float const> const> rows) override {
    std::size_t const count = keys_.size(), dim = rows[0].columns();
    if (shared_.losses.size() < count) {
      stream.wait();
      shared_.changes = Matrix<float>(stream.device(), count, dim);
      shared_.scratch = Matrix<float>(stream.device(), kernels::solve_scratch_rows(count), dim);
      shared_.losses = Array<std::int64_t>(stream.device(), count);
    }
    auto const changes = shared_.changes.view().slice(0, count);
    auto const losses = shared_.losses.view().slice(0, count);
    kernels::solve_rows(stream, {.rows = rows[0],
                                 .solved = prepared.positions(0),
                                 .others = rows[1],
                                 .interactions = prepared.positions(1),
                                 .offsets = offsets_,
                                 .gramian = shared_.gramian,
                                 .unobserved = unobserved_,
                                 .l2 = shared_.l2,
                                 .factor = static_cast<float>(batch_samples_),  // which the store divides by
                                 .changes = changes,
                                 .scratch = shared_.scratch,
                                 .losses = losses});
    // The rows of the other side are read only: their gradients are 0.
    gradients_ = {{.sources = changes}, {.sources = shared_.zero, .source_indices = zeros_, .source_max_abs = 0}};
    return losses;
  }

  std::vector<TableGradients> gradients() const override { return gradients_; }

 private:
  bool solves_items_;
  Array<Key> keys_, others_;
  Array<std::uint32_t> offsets_, zeros_;
  float unobserved_;
  std::uint32_t batch_samples_;
  IalsTask::Shared& shared_;
  std::vector<TableGradients> gradients_;
};

Matrix<float> zero_matrix(std::size_t rows, std::size_t dim, Stream& stream) {
  Matrix<float> matrix(stream.device(), rows, dim);
  memory::fill_bytes(stream, matrix.view().data(), 0, matrix.view().flat().bytes());
  return matrix;
}

// Returns the Gramian of the rows of these keys, times `weight`. Each rank computes it for some of the keys. The sum
// over all is one of integers, so it is the same for every number of ranks. Blocks. Collective.
Matrix<float> wait_gramian(Stream& stream, Store& store, TableId table, std::span<Key const> keys, float weight) {
  std::size_t const dim = store.table(table).dim;
  Matrix<float> gramian = zero_matrix(dim, dim, stream);
  Matrix<float> const parts = zero_matrix(kernels::gramian_blocks(kRowsTogether) * dim, dim, stream);
  std::vector<std::int64_t> sums(gramian.view().flat().size());
  auto const ranks = static_cast<std::size_t>(store.ranks());
  for (std::size_t b = number(store.rank()); b * kRowsTogether < keys.size(); b += ranks) {
    auto const some = keys.subspan(b * kRowsTogether, std::min(kRowsTogether, keys.size() - b * kRowsTogether));
    Matrix<float> const rows = read_rows(stream, store, table, {some.begin(), some.end()});
    kernels::gramian(stream, {.rows = rows, .out = parts});
    auto const computed = parts.view().slice(0, kernels::gramian_blocks(some.size()) * dim);
    std::vector<float> const each = to_host(stream, View<float const>(computed.flat()));
    for (std::size_t i = 0; i < each.size(); ++i) sums[i % sums.size()] += std::llround(double{each[i]} * 0x1p30);
  }
  constexpr std::size_t kSumsTogether = std::size_t{1} << 20;  // a rank's part of a collective is limited
  for (std::size_t first = 0; first < sums.size(); first += kSumsTogether) {
    store.wait_allreduce(std::span(sums).subspan(first, std::min(kSumsTogether, sums.size() - first)));
  }
  std::vector<float> all;
  for (std::int64_t const sum : sums) all.push_back(weight * static_cast<float>(static_cast<double>(sum) * 0x1p-30));
  copy<float>(stream, gramian.view().flat(), View<float const>(all));
  stream.wait();
  return gramian;
}

}  // namespace

std::vector<TableOptions> ials_tables(InteractionSet const& set, Config const& config) {
  std::vector<TableOptions> tables = recommender_tables(set, config, 1);
  for (TableOptions& table : tables) {
    table.optimizer = {.kind = Optimizer::Kind::kSgd, .learning_rate = 1};
    table.schedule = {};
  }
  return tables;
}

std::uint64_t ials_step_bytes(Config const& config, std::size_t rows, std::size_t interactions) {
  std::size_t const row_bytes = row_stride(static_cast<std::size_t>(config.model.dim)) * sizeof(float);
  return rows * (4 * row_bytes + sizeof(std::int64_t)) + interactions * sizeof(std::uint32_t);
}

std::uint64_t gramian_bytes(Config const& config) {
  auto const dim = static_cast<std::size_t>(config.model.dim);
  return dim * row_stride(dim) * ((2 + kernels::gramian_blocks(kRowsTogether)) * sizeof(float)) +
         kRowsTogether * row_stride(dim) * sizeof(float);
}

IalsTask::IalsTask(InteractionSet const& set, IalsSamples const& samples, Config const& config)
    : Recommender(set, config, ials_tables(set, config)),
      samples_(samples),
      shared_{.unobserved_weight = static_cast<float>(config.settings<InteractionSettings>().unobserved_weight),
              .l2 = static_cast<float>(config.settings<InteractionSettings>().l2)} {}

std::unique_ptr<TaskStep> IalsTask::prepare(Stream& stream, Batch const& batch) {
  Solved solved;
  for (std::uint64_t const sample : batch.samples) {
    std::optional<SolvedRow> const row = samples_.row(sample);
    if (!row) continue;
    solved.items = row->is_item;
    auto const& mine = row->is_item ? set().items.keys() : set().users.keys();
    auto const& others = row->is_item ? set().users.keys() : set().items.keys();
    solved.keys.push_back(mine[row->number]);
    for (Interaction const& pair : samples_.interactions(*row)) solved.others.push_back(others[pair.item]);
    solved.offsets.push_back(static_cast<std::uint32_t>(solved.others.size()));
  }
  std::size_t const others = solved.items ? set().known_users : set().known_items;
  return std::make_unique<IalsStep>(stream, solved, others, batch.batch_samples, shared_);
}

void IalsTask::wait_before_step(Stream& stream, Store& store, Clock clock) {
  bool const items = number(clock) % samples_.steps() >= samples_.first_step_of_items();
  if (solves_items_ == items) return;
  solves_items_ = items;
  if (shared_.zero.rows() == 0) shared_.zero = zero_matrix(1, store.table(kUsersTable).dim, stream);
  Dictionary const& others = items ? set().users : set().items;
  std::size_t const known = items ? set().known_users : set().known_items;
  shared_.gramian = wait_gramian(stream, store, items ? kUsersTable : kItemsTable,
                                 std::span(others.keys()).first(known), shared_.unobserved_weight);
}

}  // namespace gpups::trainer
