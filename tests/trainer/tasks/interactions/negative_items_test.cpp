// SPDX-License-Identifier: Apache-2.0
// Negatives are items of training that the user did not choose, each with the same probability. Samples of iALS solve
// each row once in an epoch, users first.
#include "trainer/tasks/interactions/bpr_task.hpp"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "trainer/tasks/interactions/ials_task.hpp"

namespace gpups::trainer::negative_items_test {
namespace {

using testing::Each;
using testing::ElementsAre;

// Two users chose some of six items; item 6 is not in training.
InteractionSet small_set() {
  InteractionSet set;
  for (char const* name : {"ann", "bob", "cid"}) set.users.add(name);
  for (char const* name : {"0", "1", "2", "3", "4", "5", "6"}) set.items.add(name);
  set.known_users = 2;
  set.known_items = 6;
  set.train = {{{0, 0}, {0, 1}, {1, 2}, {1, 3}, {1, 4}, {1, 5}}, 3};
  return set;
}

TEST(NegativeItems, AreThoseThatTheUserDidNotChoose) {
  InteractionSet const set = small_set();
  constexpr std::uint32_t kNegatives = 4000;
  NegativeItems const negatives(set, kNegatives, 1);
  Batch const batch{.samples = {0, 5}};
  std::vector<std::uint32_t> const items = negatives.items(batch);
  ASSERT_EQ(items.size(), 2 * (1 + kNegatives));
  EXPECT_EQ(items[0], 0U);
  EXPECT_EQ(items[1 + kNegatives], 5U);
  std::map<std::uint32_t, int> of_ann, of_bob;
  for (std::size_t k = 1; k <= kNegatives; ++k) {
    ++of_ann[items[k]];
    ++of_bob[items[1 + kNegatives + k]];
  }
  EXPECT_EQ(of_ann.size(), 4U);
  EXPECT_EQ(of_bob.size(), 2U);
  for (std::uint32_t item = 2; item < 6; ++item) EXPECT_NEAR(of_ann[item], 1000, 150) << item;
  for (std::uint32_t item = 0; item < 2; ++item) EXPECT_NEAR(of_bob[item], 2000, 200) << item;

  EXPECT_EQ(negatives.items(batch), items);
  EXPECT_NE(negatives.items({.epoch = 1, .samples = {0, 5}}), items);
  EXPECT_NE(NegativeItems(set, kNegatives, 2).items(batch), items);
}

TEST(IalsSamples, SolveUsersAndThenItems) {
  InteractionSet const set = small_set();
  IalsSamples const samples(set, 4);
  EXPECT_EQ(samples.count(), 10U);  // one batch of users, of which two samples are empty
  EXPECT_EQ(samples.steps(), 3);
  EXPECT_EQ(samples.first_step_of_items(), 1);
  EXPECT_FALSE(samples.row(2).has_value());
  EXPECT_FALSE(samples.row(3).has_value());
  std::set<std::pair<bool, std::uint32_t>> rows;
  std::size_t interactions = 0;
  for (std::uint64_t sample = 0; sample < samples.count(); ++sample) {
    auto const row = samples.row(sample);
    if (!row) continue;
    EXPECT_TRUE(rows.emplace(row->is_item, row->number).second);
    EXPECT_EQ(row->is_item, sample >= 4);
    for (Interaction const& pair : samples.interactions(*row)) {
      EXPECT_EQ(pair.user, row->number);
      EXPECT_TRUE(set.train.has(row->is_item ? Interaction{pair.item, pair.user} : pair));
      ++interactions;
    }
  }
  EXPECT_EQ(rows.size(), 2U + 6U);
  EXPECT_EQ(interactions, 2 * set.train.size());
  EXPECT_EQ(samples.most_of(1), 4U);
  EXPECT_EQ(samples.most_of(2), 6U);
}

}  // namespace
}  // namespace gpups::trainer::negative_items_test
