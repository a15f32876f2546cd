// SPDX-License-Identifier: Apache-2.0
// Ranks whose tables differ reject each other in their first exchange, with an error that names the difference.
#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "tests/support/hostile_peer.hpp"

namespace gpups::test::schema_check_test {
namespace {

// Returns the error of each rank's barrier if rank 1 has other tables; empty if there is no error.
std::vector<std::string> errors(std::function<void(Store&)> const& add, std::function<void(Store&)> const& add_on_1,
                                std::uint64_t seed_of_1 = 1) {
  std::vector<std::string> all(2);
  try {
    run_ranks(Group::threads(2), [&](Group group) {
      bool const other = group.rank() == Rank{1};
      Store store(group, {.threads = 1, .seed = other ? seed_of_1 : 1, .wait_timeout_s = 20});
      other ? add_on_1(store) : add(store);
      try {
        store.wait_barrier();
        store.wait_barrier();  // no rank leaves before all have received all schemas
      } catch (PeerError const& error) {
        all[number(group.rank())] = error.what();
      }
    });
  } catch (Error const&) {  // another rank has left because of its error
  }
  return all;
}

// The rank that receives the other's schema first ends both, so the error has the text of one of them.
void expect_rejected(TableOptions const& mine, TableOptions const& of_1, std::string const& words,
                     std::string const& words_of_1) {
  auto const all = errors([&](Store& store) { store.add_table(mine); }, [&](Store& store) { store.add_table(of_1); });
  for (auto const& error : all) EXPECT_NE(error, "") << words;
  bool named = false;
  for (auto const& error : all) {
    named |= error.find(words) != std::string::npos || error.find(words_of_1) != std::string::npos;
  }
  EXPECT_TRUE(named) << all[0] << "\n" << all[1];
}

TEST(SchemaCheck, AcceptsEqualSchemasAndDifferentHints) {
  auto const add = [](std::size_t rows) {
    return [rows](Store& store) {
      store.add_table(
          {.name = "a", .dim = 3, .expected_rows = rows, .gradient_compression = {.codec = RowCodec::kInt8}});
      store.add_table({.name = "b", .dim = 1, .dictionary_keys = 0});
    };
  };
  EXPECT_EQ(errors(add(0), add(0)), std::vector<std::string>(2));
  EXPECT_EQ(errors(add(0), add(1000)), std::vector<std::string>(2)) << "expected_rows is a hint";
}

TableOptions const kPlain{.name = "t", .dim = 4};

template <class Change>
TableOptions with(Change change) {
  TableOptions options = kPlain;
  change(options);
  return options;
}

TEST(SchemaCheck, ErrorNamesRanksAndValues) {
  expect_rejected(kPlain, with([](auto& o) { o.dictionary_keys = 100; }),
                  "rank 1 has table 't' with dictionary_keys of 100, and rank 0 of 1048576",
                  "rank 0 has table 't' with dictionary_keys of 1048576, and rank 1 of 100");
  expect_rejected(kPlain, with([](auto& o) { o.gradient_compression.codec = RowCodec::kInt4; }),
                  "rank 1 has table 't' with gradient_compression.codec of kInt4, and rank 0 of kLossless",
                  "rank 0 has table 't' with gradient_compression.codec of kLossless, and rank 1 of kInt4");
  expect_rejected(kPlain, with([](auto& o) { o.refresh_compression.filter.age_max = 3; }),
                  "rank 1 has table 't' with refresh_compression.filter.age_max of 3, and rank 0 of 0",
                  "rank 0 has table 't' with refresh_compression.filter.age_max of 0, and rank 1 of 3");
  expect_rejected(kPlain, with([](auto& o) { o.refresh_compression.capacity_rows = 7; }),
                  "refresh_compression.capacity_rows of 7, and rank 0 of", "and rank 1 of 7");
  expect_rejected(kPlain, with([](auto& o) { o.gradient_compression.top_k = 2; }), "gradient_compression.top_k of 2",
                  "and rank 1 of 2");
  expect_rejected(kPlain, with([](auto& o) { o.dim = 5; }), "table 't' with dim of 5, and rank 0 of 4",
                  "table 't' with dim of 4, and rank 1 of 5");
  expect_rejected(kPlain, with([](auto& o) { o.optimizer.learning_rate = 0.25F; }),
                  "optimizer.learning_rate of 0.25, and rank 0 of 0.1", "and rank 1 of 0.25");
  auto const until = [](std::int64_t warmup, std::int64_t steps) {
    return with(
        [=](auto& o) { o.schedule = {.kind = Schedule::Kind::kLinear, .warmup_steps = warmup, .total_steps = steps}; });
  };
  expect_rejected(until(2, 10), until(2, 20), "schedule.total_steps of 20, and rank 0 of 10", "and rank 1 of 20");
  expect_rejected(until(2, 10), until(3, 10), "schedule.warmup_steps of 3, and rank 0 of 2", "and rank 1 of 3");
  expect_rejected(kPlain, with([](auto& o) { o.name += "2"; }),
                  "rank 1 has a table 0 with the name of t2, and rank 0 of t",
                  "rank 0 has a table 0 with the name of t, and rank 1 of t2");
}

TEST(SchemaCheck, ErrorNamesKinds) {
  expect_rejected(kPlain, with([](auto& o) { o.optimizer.kind = Optimizer::Kind::kFtrl; }),
                  "optimizer.kind of kFtrl, and rank 0 of kRowwiseAdagrad", "and rank 1 of kFtrl");
  expect_rejected(kPlain, with([](auto& o) { o.initializer.kind = Initializer::Kind::kNormal; }),
                  "initializer.kind of kNormal, and rank 0 of kUniform", "and rank 1 of kNormal");
  expect_rejected(kPlain, with([](auto& o) { o.schedule = {.kind = Schedule::Kind::kCosine, .total_steps = 9}; }),
                  "schedule.kind of kCosine, and rank 0 of kConstant", "and rank 1 of kCosine");
}

TEST(SchemaCheck, RejectsOtherTableCountOrSeed) {
  auto const one = [](Store& store) { store.add_table({.name = "t", .dim = 4}); };
  for (auto const& error : errors(one, [](Store&) {})) EXPECT_NE(error.find("number of tables of"), std::string::npos);
  for (auto const& error : errors(one, one, 2)) {
    EXPECT_NE(error.find("seed of"), std::string::npos) << error;
    EXPECT_NE(error.find("and the same seed"), std::string::npos) << error;
  }
}

TEST_F(HostilePeer, RejectsTruncatedSchema) {
  peer_.send(SchemaMessage{.bytes = "abc"});
  expect_rejected("sent an invalid list of its table options");
}

}  // namespace
}  // namespace gpups::test::schema_check_test
