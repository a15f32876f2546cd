// SPDX-License-Identifier: Apache-2.0
// Gradients that codecs round and filters delay, over simulated networks: nothing is lost by rounding, filters, the
// limit of rows, rejected steps, or rows that move between senders.
#include "tests/cache/residuals_fixture.hpp"

namespace gpups::test::residuals::simulation_residuals_test {
namespace {

std::vector<RowCompression> transfers() {
  std::vector<RowCompression> all;
  for (auto const codec :
       {RowCodec::kLossless, RowCodec::kHalf, RowCodec::kBFloat16, RowCodec::kInt8, RowCodec::kInt4}) {
    for (std::uint32_t const age : {0U, 1U, 4U}) {
      for (std::size_t const top_k : {std::size_t{0}, std::size_t{2}}) {
        for (std::size_t const rows : {std::size_t{1}, std::size_t{5}, std::size_t{1000}}) {
          all.push_back(
              {.codec = codec, .top_k = top_k, .filter = {.age_max = age, .density = 0.2F}, .capacity_rows = rows});
        }
      }
    }
  }
  return all;
}

TEST(GradientResiduals, NoGradientIsLost) {
  std::uint64_t seed = 0;
  std::size_t held = 0, rejected = 0;
  std::uint64_t moved = 0;
  constexpr PlacementPolicy kPolicies[] = {PlacementPolicy::kStatic, PlacementPolicy::kRandom,
                                           PlacementPolicy::kAdaptive};
  for (auto const& transfer : transfers()) {
    for (int round = 0; round < 3; ++round, ++seed) {
      Workload work{.ranks = 2 + static_cast<int>(seed / 3 % 3),
                    .seed = seed,
                    .gradient_compression = transfer,
                    .policy = kPolicies[round],
                    .lookahead = round == 0 ? 0 : 4};
      work.rejected_share = seed % 4 == 0 ? 0.3 : 0;
      SCOPED_TRACE(fmt::format("seed {}, codec {}, age {}, top {}, room {}", seed, static_cast<int>(transfer.codec),
                               transfer.filter.age_max, transfer.top_k, transfer.capacity_rows));
      auto const outcome = train(
          Group::simulated(work.ranks, {.seed = seed, .delay_ms_max = 1.0 + static_cast<double>(seed % 9)}), work);
      ASSERT_EQ(outcome.wrong, 0U);
      if (transfer.enabled() && transfer.capacity_rows == 1000 && transfer.codec == RowCodec::kInt4) {
        ASSERT_GT(outcome.wrong_before, 0U);  // else no residual was tested
      }
      held += outcome.wrong_before;
      rejected += static_cast<std::size_t>(outcome.rejected);
      moved += outcome.moved;
    }
  }
  EXPECT_GT(moved, 1000U);
  EXPECT_GT(held, 1000U);
  EXPECT_GT(rejected, 100U);
}

}  // namespace
}  // namespace gpups::test::residuals::simulation_residuals_test
