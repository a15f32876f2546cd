// SPDX-License-Identifier: Apache-2.0
// Sums of dense gradients, layer by layer: an allreduce starts when a layer's gradient is ready, in the same order on
// all ranks, and top-k loses nothing.
#include "trainer/dense/dense_gradient_reducer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>

#include "comm/group/group_impl.hpp"
#include "kernels/index/key_index.hpp"
#include "tests/support/bulk_routes.hpp"
#include "tests/support/inputs.hpp"
#include "trainer/dense/dense_layers.hpp"

namespace gpups::trainer::dense_gradient_reducer_test {
namespace {

using Units = std::vector<std::int64_t>;
constexpr std::size_t kMicrobatches = 3;
constexpr int kGrid = -10;

// The parameters have different sizes, so that a mix-up of two sums is detected.
Parameters some_parameters() {
  Parameters parameters;
  parameters.add("a.weights", 20, 30, 0.5F);  // with padding
  parameters.add("a.bias", 1, 20, 0);
  parameters.add("b.weights", 4, 160, 0.25F);
  parameters.add("c.weights", 30, 16, 0.25F);
  return parameters;
}
DenseAllreduceOptions all_of() { return {.large_from = 400}; }
DenseAllreduceOptions top(TopKOptions const& options) { return {.large_from = 400, .top_k = options}; }

// A rank with gradients and a reducer.
struct Member {
  Member(Group const& of, DenseAllreduceOptions const& allreduce)
      : group(of),
        store(of, {.threads = 1}),
        stream(store.make_stream()),
        gradients(Device::host(), kMicrobatches, parameters.size()),
        sums(of, parameters, gradients.view(), kGrid, allreduce) {}

  std::size_t rank() const { return number(group.rank()); }
  void fill(std::size_t microbatch, Parameter const& p, float value) {
    for (std::size_t i = 0; i < p.size(); ++i) gradients.row(microbatch)[p.offset + i] = value;
  }
  // Writes gradients that are random multiples of the grid and depend on step, rank and microbatch. Adds them to `all`.
  void write(int step, Units& all) {
    for (std::size_t m = 0; m < kMicrobatches; ++m) {
      test::Random random(static_cast<std::uint64_t>(step) * 100 + rank() * 10 + m);
      std::normal_distribution<double> normal(0, 1000);
      for (std::size_t j = 0; j < parameters.size(); ++j) {
        auto const units = std::llround(normal(random));
        gradients.row(m)[j] = std::ldexp(static_cast<float>(units), kGrid);
        all[j] += units;
      }
    }
    for (std::size_t m = 0; m < kMicrobatches; ++m) {  // padding between parameters is not summed
      for (std::size_t j = 0; j < parameters.size(); ++j) {
        if (is_padding(j)) all[j] = 0;
      }
    }
  }
  bool is_padding(std::size_t j) const {
    for (Parameter const& p : parameters.all()) {
      if (j >= p.offset && j < p.offset + p.size()) return false;
    }
    return true;
  }
  void mark_ready(std::vector<std::size_t> const& order) {
    for (std::size_t const p : order) sums.mark_ready(stream, parameters.all()[p]);
  }
  Units wait() {
    EXPECT_EQ(sums.wait(stream), 0);
    return to_host(stream, sums.sums());
  }

  Parameters parameters = some_parameters();
  Group group;
  Store store;
  Stream stream;
  Matrix<float> gradients;
  DenseGradientReducer sums;
};

void run_on_ranks(int ranks, std::function<void(Group)> const& body) {
  run_ranks(ranks == 1 ? std::vector{Group::alone()} : Group::threads(ranks), body);
}

// The sum shows when an allreduce started: later changes of the gradient are not in it.
TEST(DenseGradientReducer, StartsLayersInOrderWhenTheyAreReady) {
  for (bool const top_k : {false, true}) {
    Member member(Group::alone(), top_k ? top({.density = 1, .format = WireFormat::kFloat}) : all_of());
    auto const& all = member.parameters.all();
    for (std::size_t m = 0; m < kMicrobatches; ++m) {
      for (Parameter const& p : all) member.fill(m, p, 1);
    }
    member.sums.begin_step(member.stream, kMicrobatches);
    auto const change = [&](std::size_t p) { member.fill(0, all[p], 2); };
    member.mark_ready({3, 3});
    change(3);  // not started: a microbatch is missing
    member.mark_ready({3});
    change(3);  // started
    member.fill(1, all[3], 100);
    member.mark_ready({0, 0, 0});
    change(0);  // not started: b.weights comes first
    member.mark_ready({2, 2, 2});
    member.fill(1, all[0], 100);
    member.fill(1, all[2], 100);
    change(1);  // small: at the end
    member.sums.begin_remaining(member.stream);
    Units const sums = member.wait();
    auto const first_of = [&](std::size_t p) { return std::ldexp(static_cast<double>(sums[all[p].offset]), kGrid); };
    EXPECT_EQ(first_of(3), 4);
    EXPECT_EQ(first_of(2), 3);
    EXPECT_EQ(first_of(1), 4);
    EXPECT_EQ(first_of(0), 4);
  }
}

TEST(DenseGradientReducer, SumsAreIndependentOfReadyOrder) {
  std::vector<std::vector<std::size_t>> const orders{{3, 2, 1, 0}, {0, 1, 2, 3}, {2, 0, 3, 1}, {}};
  for (int ranks = 1; ranks <= 4; ++ranks) {
    std::vector<Units> sums(static_cast<std::size_t>(ranks)), want(static_cast<std::size_t>(ranks));
    run_on_ranks(ranks, [&](Group group) {
      Member member(group, all_of());
      want[member.rank()].assign(member.parameters.size(), 0);
      for (int step = 0; step < 3; ++step) {
        Units given(member.parameters.size(), 0);
        member.write(step, given);
        member.sums.begin_step(member.stream, kMicrobatches);
        for (std::size_t m = 0; m < kMicrobatches; ++m) member.mark_ready(orders[member.rank()]);
        member.sums.begin_remaining(member.stream);
        sums[member.rank()] = member.wait();
        want[member.rank()] = given;
      }
    });
    Units all(want[0].size(), 0);
    for (auto const& one : want) {
      for (std::size_t j = 0; j < all.size(); ++j) all[j] += one[j];
    }
    for (auto const& one : sums) EXPECT_TRUE(one == all) << ranks << " ranks";
  }
}

// Trains for some steps on different numbers of ranks, and keeps residuals between them.
struct Ranks {
  std::vector<DenseGradientReducer::Residuals> residuals;
  Units given = Units(some_parameters().size(), 0), applied = given;

  void train(int ranks, DenseAllreduceOptions const& allreduce, int first, int last, bool gradients = true) {
    auto const before = residuals;
    std::mutex mutex;
    run_on_ranks(ranks, [&](Group group) {
      Member member(group, allreduce);
      for (auto const& one : before) member.sums.restore(one);
      for (int step = first; step < last; ++step) {
        Units mine(given.size(), 0);
        if (gradients) member.write(step, mine);
        member.sums.begin_step(member.stream, gradients ? kMicrobatches : 0);
        member.sums.begin_remaining(member.stream);
        Units const sums = member.wait();
        std::lock_guard const lock(mutex);
        for (std::size_t j = 0; j < given.size(); ++j) {
          given[j] += mine[j];
          if (member.rank() == 0) applied[j] += sums[j];
        }
      }
      auto saved = member.sums.wait_save(member.stream);
      member.store.wait_barrier();
      std::lock_guard const lock(mutex);
      if (member.rank() == 0) residuals = std::move(saved);
    });
  }
};

TEST(DenseGradientReducer, TopKLosesNothingWhenRankCountChanges) {
  TopKOptions const options{.density = .05, .initial_density = .5, .warmup_steps = 4};
  Ranks run;
  int step = 0;
  for (int const ranks : {2, 3, 1, 4}) {
    run.train(ranks, top(options), step, step + 3);
    step += 3;
    EXPECT_NE(run.applied, run.given);
  }
  EXPECT_EQ(run.residuals.size(), 3U);  // all but the bias
  for (auto const& one : run.residuals) EXPECT_EQ(one.of_ranks.size(), 4U);
  // A step without gradients sends all residuals.
  run.train(2, top({.density = 1, .format = WireFormat::kFloat}), step, step + 1, false);
  EXPECT_EQ(run.applied, run.given);
}

TEST(DenseGradientReducer, ResumeGivesEqualBitsOnEqualRankCount) {
  for (float const momentum : {0.0F, .5F}) {
    DenseAllreduceOptions const allreduce = top({.density = .05, .momentum = momentum});
    Ranks whole, in_parts;
    whole.train(3, allreduce, 0, 6);
    in_parts.train(3, allreduce, 0, 4);
    in_parts.train(3, allreduce, 4, 6);
    EXPECT_EQ(whole.applied, in_parts.applied);
  }
}

// A fabric between the ranks sums all layers in one operation.
TEST(DenseGradientReducer, LayersShareOneSumOfADeviceFabric) {
  constexpr int kRanks = 3;
  auto const sums_of = [](std::vector<Group> const& groups) {
    std::vector<Units> sums(kRanks);
    run_ranks(groups, [&](Group group) {
      Member member(group, all_of());
      Units given(member.parameters.size(), 0);
      member.write(0, given);
      for (std::size_t j = 0; j < member.parameters.size(); ++j) {
        for (std::size_t m = 0; m < kMicrobatches && member.is_padding(j); ++m) member.gradients.row(m)[j] = 0;
      }
      member.sums.begin_step(member.stream, kMicrobatches);
      for (std::size_t m = 0; m < kMicrobatches; ++m) member.mark_ready({3, 2, 1, 0});
      member.sums.begin_remaining(member.stream);
      sums[member.rank()] = member.wait();
      member.store.wait_barrier();
    });
    return sums;
  };
  auto const groups = Group::threads(kRanks);
  auto const hub = std::make_shared<test::FabricHub>(kRanks);
  auto ends = test::make_threads_by_fabric(hub);
  for (std::size_t rank = 0; rank < kRanks; ++rank) groups[rank].impl().bulk = std::move(ends[rank]);
  EXPECT_EQ(sums_of(groups), sums_of(Group::threads(kRanks)));
  EXPECT_EQ(hub->summed, 1U);
}

TEST(DenseGradientReducer, CountsRanksWithNanGradients) {
  for (bool const top_k : {false, true}) {
    for (std::size_t const wrong : {0, 1, 3}) {
      run_on_ranks(3, [&](Group group) {
        Member member(group, top_k ? top({}) : all_of());
        Units given(member.parameters.size(), 0);
        member.write(0, given);
        Parameter const& p = member.parameters.all()[wrong];
        if (member.rank() > 0) member.gradients.row(1)[p.offset + 7] = std::numeric_limits<float>::quiet_NaN();
        member.sums.begin_step(member.stream, kMicrobatches);
        member.sums.begin_remaining(member.stream);
        EXPECT_EQ(member.sums.wait(member.stream), 2);
        EXPECT_EQ(member.sums.wait_bad_element(member.stream), member.rank() == 0 ? kernels::kNoRow : p.offset + 7);
      });
    }
  }
}

// 2^46 units are too many for a residual, and all ranks must get the number of bad ranks.
TEST(DenseGradientReducer, CountsRanksWithTooLargeGradients) {
  run_on_ranks(3, [&](Group group) {
    Member member(group, top({.density = .01}));
    Parameter const& p = member.parameters.all()[2];
    member.sums.begin_step(member.stream, 1);
    member.fill(0, p, 0);
    if (member.rank() > 0) member.gradients.row(0)[p.offset + 7] = -0x1p46F * static_cast<float>(std::ldexp(1, kGrid));
    for (Parameter const& all : member.parameters.all()) member.sums.mark_ready(member.stream, all);
    member.sums.begin_remaining(member.stream);
    EXPECT_EQ(member.sums.wait(member.stream), 2);
    EXPECT_EQ(member.sums.wait_bad_element(member.stream), member.rank() == 0 ? kernels::kNoRow : p.offset + 7);
  });
}

// Gradients are 3/4 of the limit. A velocity that was not sent in the first step exceeds the limit in the second step.
TEST(DenseGradientReducer, CountsRanksWithTooLargeVelocities) {
  run_on_ranks(2, [&](Group group) {
    Member member(group, top({.density = .01, .momentum = .5F}));
    Parameter const& p = member.parameters.all()[2];
    for (int const wrong : {0, 1}) {
      member.sums.begin_step(member.stream, 1);
      member.fill(0, p, member.rank() == 0 ? 1.0F : 0x1.8p45F * static_cast<float>(std::ldexp(1, kGrid)));
      member.sums.begin_remaining(member.stream);
      EXPECT_EQ(member.sums.wait(member.stream), wrong);
    }
    if (member.rank() == 0) {
      EXPECT_EQ(member.sums.wait_bad_element(member.stream), kernels::kNoRow);
    } else {
      EXPECT_GE(member.sums.wait_bad_element(member.stream), p.offset);
      EXPECT_LT(member.sums.wait_bad_element(member.stream), p.offset + p.size());
    }
  });
}

TEST(DenseGradientReducer, SavingResidualsCountsNoSavedBytes) {
  run_on_ranks(3, [&](Group group) {
    Member member(group, top({}));
    auto const saved = member.sums.wait_save(member.stream);
    member.store.wait_barrier();
    EXPECT_FALSE(saved.empty());
    Stats const stats = member.store.stats();
    EXPECT_GT(stats.sent.allreduces, 0U);
    EXPECT_EQ(stats.saved_bytes.allreduces, 0U);
  });
}

// Small layers are sent whole and get the momentum of the optimizer. Large layers get the momentum of the reducer. No
// layer gets both.
TEST(DenseLayersWithMomentumCorrection, ApplyMomentumOnce) {
  auto const train = [](std::optional<TopKOptions> const& top_k) {
    Group group = Group::alone();
    Store store(group, {.threads = 1});
    Stream stream = store.make_stream();
    DenseLayers layers(group, Device::host(), some_parameters(), 1,
                       {.optimizer = {.kind = kernels::DenseOptimizer::Kind::kSgd, .learning_rate = 1, .momentum = .5F},
                        .allreduce = {.large_from = 400, .top_k = top_k}});
    std::map<std::string, std::vector<float>> values;
    for (std::int64_t step = 0; step < 3; ++step) {
      for (Parameter const& p : layers.parameters().all()) {
        for (std::size_t i = 0; i < p.rows * p.columns; ++i) {
          p.matrix(layers.gradient(0)).row(i / p.columns)[i % p.columns] = step == 0 ? 1.0F + static_cast<float>(i) : 0;
        }
      }
      layers.begin_allreduce(stream, 1);
      layers.wait_apply(stream, Clock{step}, 1);
    }
    for (Parameter const& p : layers.parameters().all()) values[p.name] = layers.wait_numbers(stream, p);
    return values;
  };
  auto const exact = train(std::nullopt), corrected = train(TopKOptions{.density = 1, .momentum = .5F});
  EXPECT_EQ(corrected.at("a.bias"), exact.at("a.bias"));
  // With top-k all elements are sent in the first step, so no velocity is left. With the optimizer's momentum the sum
  // of the steps is 1 + 1/2 + 1/4 of the gradient.
  auto const& some = exact.at("b.weights");
  for (std::size_t i = 0; i < some.size(); ++i) {
    EXPECT_NEAR(corrected.at("b.weights")[i] - some[i], .75 * (1 + static_cast<double>(i)),
                2e-3 * (1.0 + static_cast<double>(i)));
  }
}

TEST(ExplainAllreduces, DescribesExactAndTopKSums) {
  DenseAllreduceSummary sums{.exact = {2, 1000}, .grid_log2 = -20};
  EXPECT_TRUE(explain(sums, 1, {.bytes = 0, .steps = 5}).empty());
  std::string const exact =
      "exact, in units of 2^-20: each rank sums one slice and sends it to all ranks; short arrays are sent to all "
      "ranks "
      "at once";
  EXPECT_EQ(explain(sums, 4, {}),
            (std::vector<std::string>{"dense layers: 1000 numbers in 2 allreduces per step, " + exact}));
  EXPECT_EQ(explain(sums, 4, {.bytes = 4 * 5 * 3250, .steps = 5}),
            (std::vector<std::string>{"dense layers: 1000 numbers in 2 allreduces per step, " + exact +
                                      "; a rank sends 3.25 bytes per number"}));

  sums.largest = {1, 5000};
  sums.by = &top_k_algorithms()[0];
  sums.top_k = TopKOptions{.density = .001, .algorithm = "sparse_allgather", .format = WireFormat::kFloat};
  EXPECT_EQ(explain(sums, 2, {.bytes = 1000, .steps = 5}),
            (std::vector<std::string>{"dense layers: 5000 numbers in 1 allreduce per step, largest 0.1 % of each "
                                      "rank's elements, sent as integers, algorithm "
                                      "sparse_allgather: every rank receives the elements of all ranks and sums them",
                                      "dense layers: 1000 numbers in 2 allreduces per step, " + exact}));
}

TEST(DenseGradientReducer, SummaryCountsExactAndTopKSums) {
  for (int const ranks : {2, 3}) {
    run_ranks(Group::threads(ranks), [&](Group const& group) {
      DenseAllreduceSummary const all = Member(group, all_of()).sums.allreduce_summary();
      EXPECT_EQ(all.exact.sums, 4U);  // three large layers, and one sum of small ones
      EXPECT_EQ(all.exact.numbers, 600U + 20 + 640 + 480);
      EXPECT_EQ(all.largest.sums, 0U);
    });
    run_ranks(Group::threads(ranks), [&](Group const& group) {
      DenseAllreduceSummary const cut = Member(group, top({})).sums.allreduce_summary();
      EXPECT_EQ(cut.largest.sums, 3U);
      EXPECT_EQ(cut.exact.numbers, 20U);
      EXPECT_STREQ(cut.by->name, ranks == 2 ? "sparse_allgather" : "spardl");
    });
  }
}

}  // namespace
}  // namespace gpups::trainer::dense_gradient_reducer_test
