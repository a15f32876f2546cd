// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/interactions/interaction_kind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "kernels/base/check.hpp"
#include "kernels/score/pair_rows.hpp"
#include "trainer/saved/saved_model.hpp"
#include "trainer/tasks/common/named_vectors.hpp"
#include "trainer/tasks/common/nearest.hpp"
#include "trainer/tasks/common/target_ranks.hpp"
#include "trainer/tasks/interactions/interaction_data.hpp"
#include "trainer/tasks/interactions/recommender.hpp"

namespace gpups::trainer {
namespace {

// Returns the items with the largest scores, except those of `seen`. Equal scores are in the order of the items.
std::vector<std::uint32_t> best_items(std::span<float const> scores, std::span<Interaction const> seen,
                                      std::size_t count) {
  std::vector<std::uint32_t> items(scores.size());
  std::iota(items.begin(), items.end(), 0U);
  std::erase_if(items, [&](std::uint32_t item) {
    auto const found = std::lower_bound(seen.begin(), seen.end(), item,
                                        [](Interaction const& pair, std::uint32_t of) { return pair.item < of; });
    return found != seen.end() && found->item == item;
  });
  auto const middle = items.begin() + static_cast<std::ptrdiff_t>(std::min(count, items.size()));
  std::partial_sort(items.begin(), middle, items.end(), [&](std::uint32_t a, std::uint32_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
  items.erase(middle, items.end());
  return items;
}

// Returns text: for each user, a line with the name and a line for each of the `count` items with the largest scores,
// without those that the user chose in training. data: of the model's run. See TaskKind::recommend().
std::string recommend_items(SavedModel const& model, InteractionData const& data, std::vector<QueriedName> const& users,
                            std::size_t count, std::vector<std::string>& notices) {
  RestoredModel restored(model, data);  // checks the data
  InteractionSet const& set = data.set();
  std::vector<std::uint32_t> const numbers = find_trained(set.users, set.known_users, users, notices);
  std::vector<Key> keys;
  for (std::uint32_t const user : numbers) keys.push_back(set.users.keys()[user]);

  Store& store = restored.store();
  Stream stream = store.make_stream();
  auto const known = set.items.keys().begin() + static_cast<std::ptrdiff_t>(set.known_items);
  Matrix<float> const of_items = read_rows(stream, store, kItemsTable, {set.items.keys().begin(), known});
  std::size_t const block = score_rows_at_once(of_items.rows());
  std::string text;
  for (std::size_t first = 0; first < numbers.size(); first += block) {
    std::span<Key const> const some = std::span(keys).subspan(first, std::min(block, numbers.size() - first));
    Matrix<float> const of_users = read_rows(stream, store, kUsersTable, {some.begin(), some.end()});
    Matrix<float> const scores(stream.device(), of_users.rows(), of_items.rows());
    kernels::dot_rows(stream, {.left = of_users, .right = {of_items}, .out = scores});
    std::vector<float> const host = to_host(stream, View<float const>(scores.view().flat()));
    for (std::size_t i = 0; i < some.size(); ++i) {
      std::span<float const> const of_user = std::span(host).subspan(i * scores.view().stride(), of_items.rows());
      text += fmt::format("{}\n", set.users.name(numbers[first + i]));
      for (std::uint32_t const item : best_items(of_user, set.train.of(numbers[first + i]), count)) {
        text += fmt::format("  {:.3f}  {}\n", of_user[item], set.items.name(item));
      }
    }
  }
  return text;
}

using I = InteractionSettings;

Constraint const kBpr{[](Config const& c) { return c.model.name == "bpr"; }, "only model.name = \"bpr\" uses it"};
Constraint const kIals{[](Config const& c) { return c.model.name == "ials"; }, "only model.name = \"ials\" uses it"};
Constraint const kOptimized{[](Config const& c) { return c.model.name != "ials"; },
                            "model.name = \"ials\" solves for its rows"};

class InteractionKind : public TaskKind {
 public:
  std::vector<std::string> readers() const override { return {"interactions"}; }
  std::vector<std::string> models() const override { return {"bpr", "ials"}; }

  Config defaults() const override {
    Config config;
    config.data.train = config.data.valid = config.data.test = "";
    config.data.valid_share = 0;
    config.data.test_share = 0.1;
    config.model.name = "bpr";
    config.model.dim = 64;
    config.eval.hits = {20};
    config.task.values = InteractionSettings{};
    return config;
  }

  std::vector<Field> fields() const override {
    return joined(
        {{train_file(), valid_file(), test_file(), bad_share_max()},
         table_fields(),
         {valid_share().only_if(kValidIsCut), test_share().only_if(kTestIsCut), split_seed().only_if(kAnyIsCut)},
         row_fields(),
         {FieldBuilder("model", "negatives", in_task<&I::negatives>, "negatives for each interaction")
              .range(1, 1 << 20)
              .only_if(kBpr)
              .fixed_on_resume(),
          FieldBuilder("model", "l2", in_task<&I::l2>,
                       "weight of the squared norm of a row, for each interaction, and for each negative of bpr")
              .range(0, 1e6)
              .only_if(kAddsL2)
              .fixed_on_resume(),
          FieldBuilder("model", "unobserved_weight", in_task<&I::unobserved_weight>,
                       "weight of a pair of a user and an item; an interaction has 1 in addition")
              .range(0, 1e6)
              .only_if(kIals)
              .fixed_on_resume()},
         only_if(kOptimized, joined({optimizer_fields(), schedule_fields()})),
         {initial_placement().only_if(kBpr), ranking_cutoffs()}});
  }

  void check(Config const& config, std::string const& name) const override {
    require_train_file(config, name);
    GPUPS_REQUIRE(
        config.model.name != "ials" || (config.placement.staleness == 0 && !compresses(config.gradient_compression)),
        "{}: model.name is \"ials\" with placement.staleness or [gradient_compression] (the change of a row would "
        "arrive late, when the row may have been solved again): remove them",
        name);
  }

  std::unique_ptr<Data const> read(Config const& config) const override { return read_interaction_data(config); }
  // A step of least squares finds the best rows at once.
  std::int64_t least_steps(Config const& config) const override { return config.model.name == "ials" ? 0 : 100; }

  bool export_model(SavedModel const& model, std::filesystem::path const& folder, ModelFormat format,
                    std::vector<std::string>& notices) const override {
    auto const data = read_interaction_data(model.saved.config);
    export_named_vectors(model, *data, data->set().items, &data->set().users, folder, format, notices);
    return true;
  }
  std::optional<std::string> recommend(SavedModel const& model, std::vector<QueriedName> const& users,
                                       std::size_t count, std::vector<std::string>& notices) const override {
    return recommend_items(model, *read_interaction_data(model.saved.config), users, count, notices);
  }
};

}  // namespace

TaskKind const& interaction_kind() {
  static InteractionKind const kind;
  return kind;
}

}  // namespace gpups::trainer
