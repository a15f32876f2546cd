// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/recommend_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "kernels/base/check.hpp"
#include "kernels/score/pair_rows.hpp"
#include "trainer/run/session.hpp"
#include "trainer/saved/saved_model.hpp"
#include "trainer/tasks/graph/entity_matrix.hpp"
#include "trainer/tasks/graph/nearest.hpp"
#include "trainer/tasks/graph/target_ranks.hpp"
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

}  // namespace

std::string recommend_in_run(SavedRun const& run, std::vector<std::string> const& users, std::size_t count) {
  auto const* const data = dynamic_cast<InteractionData const*>(run.data.get());
  GPUPS_REQUIRE(data != nullptr,
                "{} has no users and items (recommend needs both): give the folder of a run on interactions",
                run.folder.string());
  InteractionSet const& set = data->set();
  std::vector<std::uint32_t> numbers;
  std::vector<Key> keys;
  for (std::string const& name : users) {
    numbers.push_back(find_entity(set.users, name));
    GPUPS_REQUIRE(numbers.back() < set.known_users,
                  "the user '{}' is not in the training data (its row has not been trained, so its scores mean "
                  "nothing): give another user",
                  name);
    keys.push_back(set.users.keys()[numbers.back()]);
  }

  Session session = open_session(run.saved.config, *run.data, Group::alone(), run.plan());
  wait_restore(session, run.checkpoint);
  Stream stream = session.store.make_stream();
  auto const known = set.items.keys().begin() + static_cast<std::ptrdiff_t>(set.known_items);
  Matrix<float> const of_items = read_rows(stream, session.store, kItemsTable, {set.items.keys().begin(), known});
  std::size_t const block = score_rows_at_once(of_items.rows());
  std::string text;
  for (std::size_t first = 0; first < users.size(); first += block) {
    std::span<Key const> const some = std::span(keys).subspan(first, std::min(block, users.size() - first));
    Matrix<float> const of_users = read_rows(stream, session.store, kUsersTable, {some.begin(), some.end()});
    Matrix<float> const scores(stream.device(), of_users.rows(), of_items.rows());
    kernels::dot_rows(stream, {.left = of_users, .right = {of_items}, .out = scores});
    std::vector<float> const host = to_host(stream, View<float const>(scores.view().flat()));
    for (std::size_t i = 0; i < some.size(); ++i) {
      std::span<float const> const of_user = std::span(host).subspan(i * scores.view().stride(), of_items.rows());
      text += users[first + i] + "\n";
      for (std::uint32_t const item : best_items(of_user, set.train.of(numbers[first + i]), count)) {
        text += fmt::format("  {:.3f}  {}\n", of_user[item], set.items.name(item));
      }
    }
  }
  return text;
}

}  // namespace gpups::trainer
