// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/graph/dataset.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace gpups::trainer::query_set_test {
namespace {

// ann is entity 0, ben 1 and cem 2; knows is relation 0 and likes 1, and their inverses are 2 and 3.
Dataset small_graph() {
  Dataset data;
  data.add_train("ann", "knows", "ben");
  data.add_train("ben", "knows", "ann");
  data.add_train("ann", "knows", "cem");
  data.add_train("ann", "knows", "ben");
  data.add_train("ann", "likes", "ben");
  data.add_held_out(data.test, "cem", "hates", "ben");
  return data;
}

TEST(QuerySet, HasEachQueryOfBothDirectionsOnceWithAllAnswers) {
  QuerySet const queries(small_graph());
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> found;
  for (std::size_t q = 0; q < queries.size(); ++q) {
    auto const answers = queries.answers(q);
    found[{queries.entity(q), queries.relation(q)}].assign(answers.begin(), answers.end());
  }
  EXPECT_EQ(queries.size(), found.size());
  decltype(found) const wanted{{{0, 0}, {1, 2}}, {{1, 0}, {0}}, {{0, 1}, {1}}, {{1, 2}, {0}},
                               {{0, 2}, {1}},    {{2, 2}, {0}}, {{1, 3}, {0}}};
  EXPECT_EQ(found, wanted);
}

TEST(QuerySet, BatchesHaveAllAnswersAndOneOfThemAsTheObject) {
  QuerySet const queries(small_graph());
  std::set<std::uint32_t> objects;
  for (std::uint64_t bits : {std::uint64_t{0}, ~std::uint64_t{0}}) {
    TripleBatch batch;
    for (std::size_t q = 0; q < queries.size(); ++q) queries.add_to(batch, q, bits);
    ASSERT_EQ(batch.triples.size(), queries.size());
    ASSERT_EQ(batch.answer_offsets.size(), queries.size() + 1);
    for (std::size_t q = 0; q < queries.size(); ++q) {
      EXPECT_EQ(batch.triples[q].subject, queries.entity(q));
      EXPECT_EQ(batch.triples[q].relation, queries.relation(q));
      std::vector<std::uint32_t> const answers(batch.answers.begin() + batch.answer_offsets[q],
                                               batch.answers.begin() + batch.answer_offsets[q + 1]);
      EXPECT_TRUE(std::equal(answers.begin(), answers.end(), queries.answers(q).begin(), queries.answers(q).end()));
      EXPECT_EQ(std::count(answers.begin(), answers.end(), batch.triples[q].object), 1);
      if (answers.size() == 2) objects.insert(batch.triples[q].object);
    }
  }
  EXPECT_EQ(objects, (std::set<std::uint32_t>{1, 2}));
}

}  // namespace
}  // namespace gpups::trainer::query_set_test
