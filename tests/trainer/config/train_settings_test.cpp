// SPDX-License-Identifier: Apache-2.0
// Every setting has an effect on what it configures.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "tests/support/expect_error.hpp"
#include "tests/trainer/run/train_fixture.hpp"

namespace gpups::trainer::train_settings_test {
namespace {

TEST_F(TrainTest, LearningSettingsChangeTheTables) {
  auto const hash = [&](std::string const& name, Settings settings) {
    settings.push_back("train.steps=4");
    return run(name, settings).at("table_hash").get<std::string>();
  };
  auto const base = hash("base", {});
  EXPECT_EQ(hash("same", {}), base);
  for (char const* setting : {"model.name=distmult",
                              "model.dim=32",
                              "model.loss=softmax",
                              "model.negatives=5",
                              "model.sampling=shared",
                              "model.negative_reuse=1",
                              "model.l2=0.01",
                              "model.n3=0.01",
                              "model.init=uniform",
                              "model.init_scale=0.2",
                              "model.value_type=bfloat16",
                              "model.value_type=float16",
                              "optimizer.kind=sgd",
                              "optimizer.kind=rowwise_adagrad",
                              "optimizer.kind=adam",
                              "optimizer.kind=lamb",
                              "optimizer.kind=ftrl",
                              "optimizer.learning_rate=0.05",
                              "optimizer.epsilon=0.1",
                              "optimizer.initial_accumulator=0.1",
                              "optimizer.clip_norm=0.01",
                              "optimizer.schedule=linear",
                              "optimizer.schedule=cosine",
                              "optimizer.warmup_steps=3",
                              "train.batch_size=32",
                              "train.seed=2",
                              "data.train=valid.txt"}) {
    Settings settings{setting};
    if (settings[0].starts_with("data.")) settings.insert(settings.end(), {"data.valid=", "data.test="});
    EXPECT_NE(hash(setting, settings), base) << setting;
  }
  auto const with_transe = [&](char const* setting) { return hash(setting, {"model.name=transe", setting}); };
  auto const of_transe = hash("transe", {"model.name=transe"});
  EXPECT_NE(of_transe, base);
  EXPECT_NE(hash("rotate", {"model.name=rotate"}), of_transe);
  EXPECT_NE(with_transe("model.norm=2"), of_transe);
  EXPECT_NE(with_transe("model.init_scale=0.1"), of_transe);
  // The margin sets the default range of initial values and also changes the loss.
  EXPECT_NE(hash("margin", {"model.name=transe", "model.init_scale=0.1", "model.margin=2"}),
            hash("range", {"model.name=transe", "model.init_scale=0.1"}));
  auto const adversarial = hash("adversarial", {"model.loss=self_adversarial"});
  EXPECT_NE(adversarial, base);
  EXPECT_NE(hash("temperature", {"model.loss=self_adversarial", "model.temperature=0"}), adversarial);
  auto const adam = hash("adam", {"optimizer.kind=adam"}), ftrl = hash("ftrl", {"optimizer.kind=ftrl"});
  EXPECT_NE(hash("beta1", {"optimizer.kind=adam", "optimizer.beta1=0.5"}), adam);
  EXPECT_NE(hash("beta2", {"optimizer.kind=adam", "optimizer.beta2=0.5"}), adam);
  EXPECT_NE(hash("l1", {"optimizer.kind=ftrl", "optimizer.l1=0.01"}), ftrl);
  EXPECT_NE(hash("beta", {"optimizer.kind=ftrl", "optimizer.beta=0.5"}), ftrl);
  auto const linear = hash("linear", {"optimizer.schedule=linear"});
  for (char const* setting : {"optimizer.total_steps=9", "optimizer.min_factor=0.5"}) {
    EXPECT_NE(hash(setting, {"optimizer.schedule=linear", setting}), linear) << setting;
  }
}

// Compression of rows between two ranks in one direction, gradients or refreshes. On the same number of ranks the same
// settings give the same bits.
class TransferSettings : public TrainTest, public testing::WithParamInterface<std::string> {
 protected:
  nlohmann::json summary(Settings settings) const {
    for (std::string& setting : settings) setting = GetParam() + "." + setting;
    // Without a prefetch thread the number of keys that are too late for a round depends less on timing.
    settings.insert(settings.end(), {"run.ranks=2", "train.steps=8", "train.prefetch_thread=false"});
    return run(fmt::format("run {}", runs_++), settings);
  }
  std::string hash(Settings const& settings) const { return summary(settings).at("table_hash"); }
  // Values are sent in a round, or by a late fetch if their keys were announced too late.
  double bytes(nlohmann::json const& summary) const {
    auto const of = [&](char const* kind) { return summary.at("sent").at(kind).get<double>(); };
    return GetParam() == "gradient_compression" ? of("gradients") : of("refreshes") + of("late_fetches");
  }

 private:
  mutable int runs_ = 0;
};

TEST_P(TransferSettings, ChangeTheTables) {
  std::set<std::string> hashes{hash({})};
  std::vector<Settings> all{{"codec=float16"},
                            {"codec=bfloat16"},
                            {"codec=int8"},
                            {"codec=int4"},
                            {"codec=int8", "capacity_rows=8"},
                            {"age_max=4"},
                            {"age_max=2"},
                            {"age_max=4", "density=0.5"},
                            {"age_max=4", "threshold_max=0.2"},
                            {"age_max=4", "capacity_rows=8"}};
  if (GetParam() == "gradient_compression") all.insert(all.end(), {{"top_k=4"}, {"top_k=8"}});
  for (Settings const& settings : all) {
    EXPECT_TRUE(hashes.insert(hash(settings)).second) << fmt::format("{}", fmt::join(settings, " "));
  }
}

// A row filter with threshold 0 sends all rows, so tables are those without a filter.
TEST_P(TransferSettings, ThresholdOfZeroSendsAllRows) {
  auto const whole = summary({}), held = summary({"age_max=4"});
  EXPECT_LT(bytes(held), .7 * bytes(whole));
  EXPECT_EQ(hash({"age_max=4", "threshold_max=0"}), whole.at("table_hash"));
}

// Counts bytes of the codec's own direction; a codec of the other direction would hardly change them.
TEST_P(TransferSettings, ShorterCodecsSendLess) {
  double more = bytes(summary({}));
  for (char const* codec : {"codec=float16", "codec=int8", "codec=int4"}) {
    double const coded = bytes(summary({codec}));
    EXPECT_LT(coded, .8 * more) << codec;
    more = coded;
  }
}

INSTANTIATE_TEST_SUITE_P(Directions, TransferSettings, testing::Values("gradient_compression", "refresh_compression"),
                         [](auto const& direction) { return direction.param; });

// Negatives shared by a microbatch depend on the number of microbatches.
TEST_F(TrainTest, MicrobatchesChangeSharedNegatives) {
  Settings const shared{"model.sampling=shared", "train.steps=4"};
  auto with = shared;
  with.push_back("train.microbatches=4");
  auto const summary = run("four", with);
  EXPECT_EQ(summary.at("microbatches"), 4);
  EXPECT_NE(summary.at("table_hash"), run("eight", shared).at("table_hash"));
}

TEST_F(TrainTest, DefaultMicrobatchesAreMaxOfEightAndRanks) {
  EXPECT_EQ(run("one", {"train.microbatches=0", "train.steps=1"}).at("microbatches"), 8);
  EXPECT_EQ(run("nine", {"train.microbatches=0", "train.steps=1", "run.ranks=9"}).at("microbatches"), 9);
}

TEST_F(TrainTest, EvaluationSettingsChangeTheMetrics) {
  auto const summary = run("run", {"train.steps=1", "eval.samples_max=7", "eval.hits=[2, 5]"});
  EXPECT_EQ(summary.at("test").at("ranked"), 14);
  EXPECT_TRUE(summary.at("test").contains("hits@5"));
  EXPECT_FALSE(summary.at("test").contains("hits@10"));
  EXPECT_EQ(run("all", {"train.steps=1"}).at("test").at("ranked"), 60);
  auto const sampled = [&](std::string const& name, std::string const& most, std::string const& how) {
    return run(name, {"train.steps=1", "eval.samples_max=" + most, "eval.sample=" + how}).at("test");
  };
  auto const first = sampled("first", "7", "first"), spread = sampled("spread", "7", "spread");
  EXPECT_EQ(first.at("ranked"), 14);
  EXPECT_NE(first, spread);
  EXPECT_EQ(sampled("first-all", "30", "first"), sampled("spread-all", "30", "spread"));
}

TEST_F(TrainTest, ReportSettingsChangeTheNumberOfReports) {
  run("often", {"train.epochs=4", "run.report_every=2", "train.validate_every=2"});
  EXPECT_EQ(lines("often", "loss").size(), 4U * 7 / 2 + 2);  // and at ends of epochs after an odd number of steps
  EXPECT_EQ(lines("often", "valid").size(), 2U);
  run("seldom", {"train.epochs=4", "run.report_every=1000", "train.validate_every=0"});
  EXPECT_EQ(lines("seldom", "loss").size(), 4U);  // epochs
  EXPECT_EQ(lines("seldom", "valid").size(), 1U);
  run("without", {"train.epochs=2", "data.valid="});
  EXPECT_EQ(lines("without", "valid").size(), 0U);
}

TEST(TrainSettings, PatienceNeedsValidation) {
  auto const patience = [](std::string const& data, int value) {
    return parse_config(fmt::format("[data]\n{}\n[train]\npatience = {}\n", data, value), "run.toml", "/")
        .train.patience;
  };
  for (char const* const data :
       {"valid = ''", "reader = 'ratings'\ntrain = 'r'\nvalid_share = 0", "reader = 'wordnet'\nvalid_share = 0"}) {
    test::expect_error([&] { patience(data, 1); },
                       {"train.patience has no effect here (there are no samples for validation", "data.valid_share"});
    EXPECT_EQ(patience(data, 0), 0) << data;
  }
  for (char const* const data : {"", "reader = 'ratings'\ntrain = 'r'\nvalid_share = 0.1",
                                 "reader = 'clicks'\ntrain = 'c'\nvalid = 'v'", "reader = 'wordnet'"}) {
    EXPECT_EQ(patience(data, 1), 1) << data;
  }
}

// The graph has 120 entities.
TEST_F(TrainTest, MoreNegativesThanEntitiesAreAllEntities) {
  for (std::string const sampling : {"triple", "shared"}) {
    auto const hash = [&](std::string const& negatives) {
      return run(sampling + negatives, {"train.steps=9", "model.sampling=" + sampling, "model.negatives=" + negatives})
          .at("table_hash");
    };
    auto const of_all = hash("120");
    EXPECT_EQ(hash("121"), of_all) << sampling;
    EXPECT_EQ(hash("5000"), of_all) << sampling;
    EXPECT_NE(hash("119"), of_all) << sampling;
  }
}

TEST_F(TrainTest, SaysThatAModelDiverged) {
  auto const says = [&](std::string const& name, std::string const& rate) {
    testing::internal::CaptureStderr();
    run(name, {"train.epochs=3", "optimizer.learning_rate=" + rate});
    return testing::internal::GetCapturedStderr().find("the model diverged") != std::string::npos;
  };
  EXPECT_TRUE(says("diverged", "1000"));
  EXPECT_FALSE(says("learned", "0.1"));
}

// A run that ends with an error leaves the last checkpoint that was saved.
TEST_F(TrainTest, CheckpointsAreSavedAtTheirInterval) {
  Settings const diverging{"optimizer.kind=sgd", "optimizer.learning_rate=30", "train.epochs=1000",
                           "train.keep_best=false"};  // else a step may be in the best checkpoint only
  auto const breaks_off = [&](std::string const& name, std::string const& setting) {
    Settings settings = diverging;
    settings.push_back(setting);
    EXPECT_THROW(run(name, settings), GradientError);
    return std::filesystem::exists(folder_.path() / name / "checkpoint");
  };
  EXPECT_TRUE(breaks_off("each", "train.checkpoint_every=1"));
  EXPECT_FALSE(breaks_off("never", "train.checkpoint_every=0"));
}

TEST(TrainSettings, PatienceThatCannotEndARunIsSaid) {
  Config config;
  config.train.patience = 3;
  EXPECT_EQ(idle_patience(config, 3),
            "train.patience = 3 cannot end this run: it needs 4 validations before the last step, and there are 3; "
            "raise train.epochs, or lower train.patience or train.validate_every");
  EXPECT_EQ(idle_patience(config, 4), "");
  config.train.patience = 0;
  EXPECT_EQ(idle_patience(config, 0), "");
}

}  // namespace
}  // namespace gpups::trainer::train_settings_test
