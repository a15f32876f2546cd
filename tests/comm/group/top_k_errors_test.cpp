// SPDX-License-Identifier: Apache-2.0
// Errors of top-k allreduces: invalid options and calls, foreign saved states, and ranks with different options.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gpups/gpups.hpp"
#include "gpups/top_k_allreduce.hpp"
#include "tests/support/expect_error.hpp"

namespace gpups::test::top_k_errors_test {
namespace {

using Units = std::vector<std::int64_t>;

TEST(TopKAllreduce, RejectsInvalidOptions) {
  Group group = Group::alone();
  auto const make = [&](TopKOptions const& options) { TopKAllreduce(group, 10, options); };
  expect_error([&] { make({.density = 0}); }, {"the density is 0", "use 0 < density <= initial_density <= 1"});
  expect_error([&] { make({.density = .5, .initial_density = .1, .warmup_steps = 3}); },
               {"the density is 0.5 and the initial density 0.1"});
  expect_error([&] { make({.momentum = 1}); }, {"the momentum is 1 (velocities would grow without limit)"});
  expect_error([&] { make({.algorithm = "ring"}); },
               {"there is no top-k algorithm \"ring\"", "sparse_allgather", "spardl"});
  expect_error([&] { make({.format = WireFormat::kInt4}); },
               {"cannot use the wire format int4", "use float, half, bfloat or int8"});
  expect_error([&] { make({.grid_log2 = -300}); }, {"grid_log2 is -300"});
  expect_error([&] { TopKAllreduce(group, 0xFFFFFFFF, {}); }, {"is too long for a TopKAllreduce"});
  make({.density = .5, .initial_density = 7});  // initial_density means nothing without warm-up
}

TEST(TopKAllreduce, RejectsMisuse) {
  Group group = Group::alone();
  TopKAllreduce sum(group, 10, {});
  Units values(10, 1);
  View<std::int64_t> const view(values);
  Stream stream(Device::host(), 1);
  expect_error([&] { sum.wait(stream, view); }, {"no sum of the object is in flight: call begin first"});
  expect_error([&] { sum.begin(stream, View<std::int64_t const>(view.slice(0, 9))); },
               {"was given 9 elements of a gradient of 10"});
  sum.begin(stream, View<std::int64_t const>(view));
  expect_error([&] { sum.begin(stream, View<std::int64_t const>(view)); },
               {"TopKAllreduce::begin was called while a sum of the object is in flight"});
  expect_error([&] { sum.save(); }, {"TopKAllreduce::save was called while a sum"});
  expect_error([&] { sum.wait(stream, view.slice(0, 9)); }, {"was given an array of 9 elements for 10 sums"});
  sum.wait(stream, view);
  EXPECT_EQ(std::count(values.begin(), values.end(), 1), 1);
  std::vector<float> wrong(10, std::numeric_limits<float>::infinity());
  expect_error([&] { sum.begin(stream, View<float const>(wrong)); }, {"a gradient is not finite or"});
}

TEST(TopKAllreduce, RestoresOnlyItsOwnState) {
  Group group = Group::alone();
  TopKAllreduce sum(group, 10, {}), other(group, 11, {}), with_momentum(group, 10, {.momentum = .9F});
  auto const restore = [&](std::string const& bytes) { sum.restore(std::vector<std::string>{bytes}); };
  std::string const saved = sum.save();
  expect_error([&] { restore(other.save()); },
               {"rank 0 has 11 residuals and 0 velocities", "the gradient has 10 and 0"});
  expect_error([&] { restore(with_momentum.save()); }, {"10 residuals and 10 velocities", "momentum was on or off"});
  expect_error([&] { restore(saved.substr(0, saved.size() - 1)); },
               {"the saved state of a TopKAllreduce cannot be read"});
  expect_error([&] { restore("what?"); }, {"is of another version"});
  expect_error([&] { sum.restore({}); },
               {"no saved state was given to restore", "give what TopKAllreduce::save() returned"});
  restore(saved);
}

// All ranks get an error with both options, whichever rank has different ones.
TEST(TopKAllreduce, RejectsDifferentOptionsOfRanks) {
  TopKOptions const common{.density = .1, .algorithm = "sparse_allgather", .format = WireFormat::kBFloat16};
  TopKOptions density = common, algorithm = common, format = common, grid = common;
  density.density = .2;
  algorithm.algorithm = "ssar_split_allgather";
  format.format = WireFormat::kHalf;
  grid.grid_log2 = -29;
  std::string const of_common = "sums 100 elements of gradients by sparse_allgather in bfloat, grid -30, 10 at most";
  for (auto const& [other, of_other] : {std::pair{density, "by sparse_allgather in bfloat, grid -30, 20 at most"},
                                        std::pair{algorithm, "by ssar_split_allgather in bfloat, grid -30, 10 at most"},
                                        std::pair{format, "by sparse_allgather in half, grid -30, 10 at most"},
                                        std::pair{grid, "by sparse_allgather in bfloat, grid -29, 10 at most"}}) {
    for (std::size_t const ranks : {2, 3}) {
      for (std::size_t odd = 0; odd < ranks; ++odd) {
        SCOPED_TRACE(testing::Message() << of_other << " on rank " << odd << " of " << ranks);
        std::vector<std::string> texts(ranks);
        run_ranks(Group::threads(static_cast<int>(ranks)), [&](Group group) {
          Store store(group, {.threads = 1});
          Stream stream = store.make_stream();
          std::size_t const me = number(group.rank());
          TopKAllreduce sum(group, 100, me == odd ? other : common);
          Units values(100, 1);
          sum.begin(stream, View<std::int64_t const>(values));
          try {
            sum.wait(stream, View<std::int64_t>(values));
          } catch (PeerError const& error) {
            texts[me] = error.what();
          }
        });
        for (auto const& text : texts) {
          EXPECT_NE(text.find(of_common), std::string::npos) << text;
          EXPECT_NE(text.find(of_other), std::string::npos) << text;
        }
      }
    }
  }
}

}  // namespace
}  // namespace gpups::test::top_k_errors_test
