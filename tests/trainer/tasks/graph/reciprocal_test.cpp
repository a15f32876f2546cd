// SPDX-License-Identifier: Apache-2.0
// Runs with reciprocal relations, with all entities as candidates, and with dropout.
#include "tests/support/expect_error.hpp"
#include "tests/trainer/run/train_fixture.hpp"

namespace gpups::trainer::reciprocal_test {
namespace {

using test::expect_error;

class SoftmaxRun : public RunTest {
 protected:
  SoftmaxRun() : RunTest({"model.dim=16", "model.loss=softmax", "train.validate_every=100"}) {
    test::write_synthetic_graph(folder_);
  }
};

class ReciprocalTest : public SoftmaxRun, public testing::WithParamInterface<std::vector<std::string>> {
 protected:
  Settings settings(Settings more) const {
    more.insert(more.end(), GetParam().begin(), GetParam().end());
    return more;
  }
};
INSTANTIATE_TEST_SUITE_P(
    All, ReciprocalTest,
    testing::Values(std::vector<std::string>{"model.sampling=shared"}, std::vector<std::string>{"model.sampling=all"},
                    std::vector<std::string>{"model.sampling=shared", "model.reciprocal=true"},
                    std::vector<std::string>{"model.sampling=all", "model.reciprocal=true"},
                    std::vector<std::string>{"model.sampling=all", "model.loss=logistic", "model.label_smoothing=.1",
                                             "optimizer.kind=adam", "optimizer.learning_rate=.06"},
                    std::vector<std::string>{"model.sampling=kvsall", "model.reciprocal=true", "model.loss=logistic",
                                             "optimizer.kind=adam", "optimizer.learning_rate=.06"},
                    std::vector<std::string>{"model.sampling=kvsall", "model.reciprocal=true", "model.n3=.001",
                                             "model.entity_dropout=.1", "model.relation_dropout=.1"}));

TEST_P(ReciprocalTest, Learns) {
  EXPECT_GT(run("run", settings({"train.epochs=40"})).at("test").at("mrr").get<double>(), 0.25);
}

TEST_P(ReciprocalTest, BitsAreIndependentOfRanks) {
  auto const with = [&](std::string const& ranks) {
    return result(run(ranks, settings({"train.epochs=10", "run.ranks=" + ranks})));
  };
  auto const alone = with("1");
  for (char const* ranks : {"2", "3", "4"}) EXPECT_EQ(with(ranks), alone) << ranks;
}

TEST_P(ReciprocalTest, ResumedRunEqualsUninterruptedRun) {
  auto const until = [&](std::string const& name, std::string const& steps, std::string const& ranks, bool resume) {
    return run(name, settings({"train.steps=" + steps, "run.ranks=" + ranks, "train.keep_best=false"}), resume);
  };
  auto whole = result(until("whole", "20", "1", false));
  until("run", "9", "3", false);
  auto resumed = result(until("run", "20", "2", true));
  for (auto* one : {&whole, &resumed}) one->erase("loss");  // since the last report
  EXPECT_EQ(resumed, whole);
}

TEST_F(SoftmaxRun, SettingsChangeTheTables) {
  auto const hash = [&](std::string const& name, Settings settings) {
    settings.insert(settings.begin(), {"model.sampling=all", "model.reciprocal=true", "train.steps=4"});
    return run(name, settings).at("table_hash").get<std::string>();
  };
  auto const base = hash("base", {});
  for (char const* setting : {"model.label_smoothing=.1", "model.entity_dropout=.2", "model.relation_dropout=.2",
                              "model.loss=logistic", "model.sampling=kvsall"}) {
    EXPECT_NE(hash(setting, {setting}), base) << setting;
  }
  EXPECT_NE(hash("queries", {"model.sampling=kvsall", "model.loss=logistic"}), hash("one", {"model.loss=logistic"}));
}

TEST_F(SoftmaxRun, TrainsOnTwoEntitiesWithAllSamplings) {
  folder_.write("two.txt", "ann\tknows\tben\n");
  Settings const two{"train.steps=1", "data.train=two.txt", "data.valid=", "data.test=", "model.reciprocal=true"};
  auto const steps = [&](std::string const& sampling) {
    Settings settings = two;
    settings.push_back("model.sampling=" + sampling);
    return run(sampling, settings).at("steps").get<int>();
  };
  for (char const* sampling : {"shared", "all", "kvsall"}) EXPECT_EQ(steps(sampling), 1) << sampling;
}

TEST_F(SoftmaxRun, RejectsWhatItCannotTrain) {
  expect_error([&] { run("bad", {"model.reciprocal=true"}); },
               {"reciprocal relations", "use sampling shared, all or kvsall"});
  expect_error([&] { run("bad", {"model.sampling=kvsall"}); }, {"no reciprocal relations", "set reciprocal to true"});
  expect_error([&] { config({"model.label_smoothing=.1"}); }, {"model.label_smoothing", "has no effect here"});
  expect_error([&] { config({"model.entity_dropout=.1"}); }, {"model.entity_dropout", "has no effect here"});
  expect_error(
      [&] {
        config({"model.name=rotate", "model.sampling=shared", "model.relation_dropout=.1"});
      },
      {"model.relation_dropout", "has no effect here"});
  expect_error([&] { config({"model.sampling=all", "model.negatives=7"}); }, {"model.negatives", "has no effect here"});
}

}  // namespace
}  // namespace gpups::trainer::reciprocal_test
