// SPDX-License-Identifier: Apache-2.0
// Dense layers over ranks: exact sums, steps of optimizers compared with double, invalid gradients, and checkpoints.
#include "trainer/dense/dense_layers.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <numbers>

#include "tests/support/dense_optimizer_oracle.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::trainer::dense_layers_test {
namespace {

using test::expect_error;
using Optimizer = kernels::DenseOptimizer;

constexpr std::size_t kMicrobatches = 6;
constexpr std::size_t kSamples = 48;

TEST(Parameters, HaveNamesThatDiffer) {
  Parameters parameters;
  parameters.add("a.weights", 1, 3, 0);
  parameters.add("a.bias", 1, 1, 0);
  test::expect_error([&] { parameters.add("a.weights", 2, 2, 0); }, {"two parameters 'a.weights' ("});
}

Parameters some_parameters() {
  Parameters parameters;
  parameters.add("a.weights", 3, 5, 0.5F);  // with padding
  parameters.add("a.bias", 1, 3, 0);
  parameters.add("b.weights", 2, 17, 0.25F);
  return parameters;
}

// A rank with dense layers.
struct Member {
  explicit Member(Group const& group, DenseOptions const& options = {}, Parameters parameters = some_parameters())
      : store(group, {.threads = 1}),
        stream(store.make_stream()),
        layers(group, Device::host(), std::move(parameters), kMicrobatches, options) {}

  // Writes the gradient of microbatch `number` in step `step`, without padding.
  void write_gradient(std::size_t place, std::size_t number, std::int64_t step) {
    test::Random random(1000 * static_cast<std::uint64_t>(step) + number);
    for (Parameter const& p : layers.parameters().all()) {
      auto const to = p.matrix(layers.gradient(place));
      for (std::size_t i = 0; i < p.rows; ++i) {
        for (std::size_t j = 0; j < p.columns; ++j) {
          to.row(i)[j] = static_cast<float>((test::uniform(random) - 0.4) * std::pow(10, number % 4));
        }
      }
    }
  }
  // Runs a step in which this rank has microbatches first .. last - 1.
  void step(std::int64_t clock, std::size_t first, std::size_t last) {
    for (std::size_t m = first; m < last; ++m) write_gradient(m - first, m, clock);
    layers.begin_allreduce(stream, last - first);
    layers.wait_apply(stream, Clock{clock}, kSamples);
  }
  std::vector<float> values(std::string const& name, std::string const& part = "values") {
    for (Blob const& blob : layers.wait_save(stream)) {
      if (blob.name != "dense/" + name + "/" + part) continue;
      std::vector<float> numbers(blob.bytes.size() / sizeof(float));
      std::memcpy(numbers.data(), blob.bytes.data(), blob.bytes.size());
      return numbers;
    }
    ADD_FAILURE() << "no blob of " << name << "/" << part;
    return {};
  }

  Store store;
  Stream stream;
  DenseLayers layers;
};

void run_on_ranks(int ranks, std::function<void(Group)> const& body) {
  run_ranks(ranks == 1 ? std::vector{Group::alone()} : Group::threads(ranks), body);
}

struct Case {
  char const* name;
  Optimizer optimizer;
  Schedule schedule{};
};
std::vector<Case> cases() {
  using Kind = Optimizer::Kind;
  return {{"adam", {.kind = Kind::kAdam, .learning_rate = 0.05F, .beta1 = 0.8F, .beta2 = 0.95F}},
          {"adam_decay",
           {.kind = Kind::kAdam, .learning_rate = 0.05F, .epsilon = 0.01F, .weight_decay = 0.3F},
           {.kind = Schedule::Kind::kLinear, .warmup_steps = 2, .total_steps = 6, .min_factor = 0.1F}},
          {"adagrad", {.kind = Kind::kAdagrad, .learning_rate = 0.1F, .initial_accumulator = 0.5F}},
          {"sgd", {.kind = Kind::kSgd, .learning_rate = 0.1F, .weight_decay = 0.1F}},
          {"momentum",
           {.kind = Kind::kSgd, .learning_rate = 0.1F, .momentum = 0.9F},
           {.kind = Schedule::Kind::kCosine, .total_steps = 8}},
          {"lamb",
           {.kind = Kind::kLamb, .learning_rate = 0.05F, .beta2 = 0.95F, .weight_decay = 0.3F},
           {.kind = Schedule::Kind::kLinear, .total_steps = 6}},
          {"ftrl", {.kind = Kind::kFtrl, .learning_rate = 0.1F, .initial_accumulator = 0.5F, .l1 = 0.2F, .l2 = 0.1F}},
          {"ftrl_decay",
           {.kind = Kind::kFtrl, .learning_rate = 0.1F, .beta = 2.0F},
           {.kind = Schedule::Kind::kLinear, .warmup_steps = 2, .total_steps = 5}}};
}

// Returns the rate of step `clock`, counted from 0, divided by the learning rate.
double factor(Schedule const& s, std::int64_t clock) {
  auto const now = static_cast<double>(clock), warmup = static_cast<double>(s.warmup_steps);
  if (clock < s.warmup_steps) return (now + 1) / warmup;
  double const done = std::min(1.0, (now - warmup) / (static_cast<double>(s.total_steps) - warmup));
  double const floor = s.min_factor;
  if (s.kind == Schedule::Kind::kLinear) return 1 - (1 - floor) * done;
  if (s.kind == Schedule::Kind::kCosine) return floor + (1 - floor) * (1 + std::cos(std::numbers::pi * done)) / 2;
  return 1;
}

class DenseOptimizers : public testing::TestWithParam<Case> {};

TEST_P(DenseOptimizers, MatchTheOracleInDouble) {
  auto const& [name, o, schedule] = GetParam();
  Member member(Group::alone(), {.optimizer = o, .schedule = schedule});
  std::map<std::string, std::vector<test::DenseNumber>> all;
  for (Parameter const& p : member.layers.parameters().all()) {
    for (float value : member.values(p.name)) all[p.name].emplace_back(o, static_cast<double>(value));
  }
  test::DenseRates rates{};
  for (std::int64_t clock = 0; clock < 6; ++clock) {
    member.step(clock, 0, kMicrobatches);
    rates = {static_cast<double>(o.learning_rate) * factor(schedule, clock), rates.now, rates.step + 1};
    for (Parameter const& p : member.layers.parameters().all()) {
      std::vector<double> gradient(p.rows * p.columns);
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        for (std::size_t m = 0; m < kMicrobatches; ++m) {
          gradient[i] += static_cast<double>(p.matrix(member.layers.gradient(m)).row(i / p.columns)[i % p.columns]);
        }
        gradient[i] /= kSamples;
      }
      auto& want = all[p.name];
      test::dense_step(o, rates, gradient, want);
      std::vector<float> const got = member.values(p.name);
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        ASSERT_NEAR(got[i], want[i].value, 1e-5 * std::max(1.0, std::abs(want[i].value)))
            << p.name << "[" << i << "], step " << clock;
      }
    }
  }
}
TEST_P(DenseOptimizers, BitsAreIndependentOfMicrobatchDistribution) {
  // The number of microbatches of each rank; some ranks have none.
  std::vector<std::vector<std::size_t>> const shares{{6}, {3, 3}, {1, 5}, {2, 2, 2}, {0, 6}, {1, 0, 4, 1}};
  auto const& [name, o, schedule] = GetParam();
  std::optional<std::uint64_t> hash;
  for (auto const& share : shares) {
    run_on_ranks(static_cast<int>(share.size()), [&](Group group) {
      Member member(group, {.optimizer = o, .schedule = schedule});
      std::size_t first = 0;
      for (std::size_t r = 0; r < number(group.rank()); ++r) first += share[r];
      for (std::int64_t clock = 0; clock < 3; ++clock) {
        member.step(clock, first, first + share[number(group.rank())]);
      }
      std::uint64_t const mine = member.layers.wait_hash(member.stream);
      static std::mutex mutex;
      std::lock_guard const lock(mutex);
      if (!hash) hash = mine;
      EXPECT_EQ(mine, *hash) << share.size() << " ranks, rank " << number(group.rank());
    });
  }
}

std::string name_of(testing::TestParamInfo<Case> const& one) { return one.param.name; }
INSTANTIATE_TEST_SUITE_P(All, DenseOptimizers, testing::ValuesIn(cases()), name_of);

TEST(DenseLayers, InitialValuesDependOnlyOnNameAndSeed) {
  Member one(Group::alone());
  Parameters other_order;
  other_order.add("b.weights", 2, 17, 0.25F);
  other_order.add("more.weights", 40, 40, 1);
  other_order.add("a.weights", 3, 5, 0.5F);
  Member two(Group::alone(), {}, other_order);
  EXPECT_EQ(one.values("a.weights"), two.values("a.weights"));
  EXPECT_EQ(one.values("b.weights"), two.values("b.weights"));
  EXPECT_NE(Member(Group::alone(), {.seed = 2}).values("a.weights"), one.values("a.weights"));
  EXPECT_EQ(one.values("a.bias"), std::vector<float>(3, 0));
  double sum = 0, squares = 0;
  for (float x : two.values("more.weights")) {
    EXPECT_TRUE(x >= -1 && x < 1) << x;
    sum += static_cast<double>(x), squares += static_cast<double>(x) * static_cast<double>(x);
  }
  EXPECT_NEAR(sum / 1600, 0, 0.06);  // 4 standard deviations
  EXPECT_NEAR(squares / 1600, 1.0 / 3, 0.03);
}

TEST(DenseLayers, NonfiniteGradientOnOneRankThrowsOnAll) {
  for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 1e30F}) {
    run_on_ranks(3, [&](Group group) {
      Member member(group);
      std::size_t const rank = number(group.rank());
      member.step(0, 2 * rank, 2 * rank + 2);
      std::uint64_t const before = member.layers.wait_hash(member.stream);
      member.write_gradient(0, rank, 1);
      member.write_gradient(1, rank + 3, 1);
      Parameter const& weights = member.layers.parameters().all()[0];
      if (rank == 1) weights.matrix(member.layers.gradient(1)).row(2)[4] = bad;
      member.layers.begin_allreduce(member.stream, 2);
      try {
        member.layers.wait_apply(member.stream, Clock{1}, kSamples);
        ADD_FAILURE() << "nothing was thrown on rank " << rank;
      } catch (Error const& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr(rank == 1 ? "the gradient of number 14 of a.weights is not finite"
                                                               : "of a dense layer on another rank is not finite"));
        EXPECT_THAT(error.what(), testing::HasSubstr("at step 1 (dense layers have not changed"));
      }
      EXPECT_EQ(member.layers.wait_hash(member.stream), before);
    });
  }
}

TEST(DenseLayers, ResumeFromCheckpointGivesEqualBits) {
  for (auto const& [name, optimizer, schedule] : cases()) {
    DenseOptions const options{.optimizer = optimizer, .schedule = schedule};
    Member whole(Group::alone(), options);
    whole.step(0, 0, kMicrobatches);
    whole.step(1, 0, kMicrobatches);
    auto const blobs = whole.layers.wait_save(whole.stream);
    Member again(Group::alone(), {.optimizer = optimizer, .schedule = schedule, .seed = 99});
    EXPECT_NE(again.layers.wait_hash(again.stream), whole.layers.wait_hash(whole.stream)) << name;
    again.layers.wait_restore(again.stream, blobs);
    EXPECT_EQ(again.layers.wait_hash(again.stream), whole.layers.wait_hash(whole.stream)) << name;
    for (Member* member : {&whole, &again}) member->step(2, 0, kMicrobatches);
    EXPECT_EQ(again.layers.wait_hash(again.stream), whole.layers.wait_hash(whole.stream)) << name;
  }
}

TEST(DenseLayers, RejectCheckpointOfOtherLayers) {
  Member member(Group::alone());
  auto const blobs = member.layers.wait_save(member.stream);
  for (Blob const& left_out : blobs) {
    auto some = blobs;
    std::erase_if(some, [&](Blob const& blob) { return blob.name == left_out.name; });
    expect_error([&] { member.layers.wait_restore(member.stream, some); },
                 {"the checkpoint has no ", left_out.name.c_str(), "(its model has other layers): use the config"});
    some.push_back({left_out.name, left_out.bytes + "0123"});
    expect_error([&] { member.layers.wait_restore(member.stream, some); }, {left_out.name.c_str(), " numbers "});
  }
}

TEST(DenseLayers, RejectCheckpointWithoutTopKResiduals) {
  DenseOptions const top_k{.allreduce = {.large_from = 10, .top_k = TopKOptions{}}};
  Member whole(Group::alone()), member(Group::alone(), top_k), again(Group::alone(), top_k);
  expect_error([&] { member.layers.wait_restore(member.stream, whole.layers.wait_save(whole.stream)); },
               {"the checkpoint has no dense/b.weights/residual/0", "or its run did not compress their gradients"});
  again.layers.wait_restore(again.stream, member.layers.wait_save(member.stream));
}

TEST(DenseLayers, HashDependsOnEveryNumber) {
  Member member(Group::alone());  // Adam: two numbers of state for each
  member.step(0, 0, kMicrobatches);
  auto const blobs = member.layers.wait_save(member.stream);
  EXPECT_EQ(blobs.size(), 3U * 3);
  std::uint64_t const hash = member.layers.wait_hash(member.stream);
  for (std::size_t b = 0; b < blobs.size(); ++b) {
    for (std::size_t byte = 0; byte < blobs[b].bytes.size(); byte += sizeof(float)) {
      auto changed = blobs;
      changed[b].bytes[byte] = static_cast<char>(changed[b].bytes[byte] ^ 1);  // the last bit
      member.layers.wait_restore(member.stream, changed);
      EXPECT_NE(member.layers.wait_hash(member.stream), hash) << blobs[b].name << " byte " << byte;
    }
  }
  member.layers.wait_restore(member.stream, blobs);
  EXPECT_EQ(member.layers.wait_hash(member.stream), hash);
}

TEST(DenseLayers, MemoryPlanMatchesAllocatedBytes) {
  Member member(Group::alone());
  std::size_t const floats = member.layers.parameters().size();
  auto const plan = member.layers.memory_plan();
  ASSERT_EQ(plan.size(), 4U);
  EXPECT_EQ(plan[0].bytes, floats * 4);
  EXPECT_GE(plan[1].bytes, floats * 4 * kMicrobatches);
  EXPECT_EQ(plan[2].bytes, floats * 8);
  EXPECT_GE(plan[3].bytes, floats * 8);
  EXPECT_EQ(member.layers.parameters().count(), 15U + 3 + 34);
  // The plan before the layers are created is the same.
  for (auto const kind : {Optimizer::Kind::kSgd, Optimizer::Kind::kAdam, Optimizer::Kind::kLamb}) {
    for (std::size_t large_from : {std::size_t{8}, std::size_t{1} << 40}) {
      DenseOptions options{.optimizer = {.kind = kind}};
      options.allreduce.large_from = large_from;
      if (large_from == 8) options.allreduce.top_k = TopKOptions{.density = 0.5};
      Member const made(Group::alone(), options);
      auto const before = DenseLayers::memory_plan(made.layers.parameters(), kMicrobatches, options);
      auto const after = made.layers.memory_plan();
      ASSERT_EQ(before.size(), after.size());
      for (std::size_t i = 0; i < after.size(); ++i) {
        EXPECT_EQ(before[i].what, after[i].what);
        EXPECT_NEAR(static_cast<double>(before[i].bytes), static_cast<double>(after[i].bytes), 200) << after[i].what;
      }
    }
  }
  Member lamb(Group::alone(), {.optimizer = {.kind = Optimizer::Kind::kLamb}});
  EXPECT_GE(lamb.layers.memory_plan()[2].bytes, floats * 8 + 3 * 12);  // LAMB needs 12 bytes for each of three parts
  EXPECT_LE(lamb.layers.memory_plan()[2].bytes, floats * 8 + 100);
}

}  // namespace
}  // namespace gpups::trainer::dense_layers_test
