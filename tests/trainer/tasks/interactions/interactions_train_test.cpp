// SPDX-License-Identifier: Apache-2.0
// Runs on interactions: both models learn, have the same bits on any number of ranks and threads, and can be resumed
// and exported.
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>
#include <map>
#include <set>

#include "tests/support/expect_error.hpp"
#include "tests/trainer/run/train_fixture.hpp"
#include "trainer/base/random.hpp"
#include "trainer/run/saved_run.hpp"
#include "trainer/tasks/interactions/interaction_data.hpp"

namespace gpups::trainer::interactions_train_test {
namespace {

using test::expect_error;
using testing::HasSubstr;

constexpr std::uint64_t kTastes = 4, kUsers = 100, kItems = 60;

// Each user likes the items of one taste: user u and item i have the tastes u % 4 and i % 4. One of ten choices is
// random.
std::string tasteful_choices() {
  std::string text;
  for (std::uint64_t u = 0; u < kUsers; ++u) {
    text += fmt::format("u{}", u);
    for (std::uint64_t k = 0; k < 8; ++k) {
      std::uint64_t const any = random_bits(1, u, k) % kItems;
      text += fmt::format(" i{}", random_bits(2, u, k) % 10 == 0 ? any : any / kTastes * kTastes + u % kTastes);
    }
    text += "\n";
  }
  return text;
}

class InteractionsRunTest : public RunTest {
 protected:
  InteractionsRunTest()
      : RunTest({"data.reader=interactions", "data.train=choices.txt", "data.valid_share=0.1", "model.dim=8",
                 "eval.hits=[5, 10]"}) {
    folder_.write("choices.txt", tasteful_choices());
  }
};

class InteractionsTrainTest : public InteractionsRunTest, public testing::WithParamInterface<char const*> {
 protected:
  nlohmann::json run_model(std::string const& name, Settings settings, bool resume = false) const {
    settings.insert(settings.begin(), fmt::format("model.name={}", GetParam()));
    return run(name, settings, resume);
  }
};

INSTANTIATE_TEST_SUITE_P(Models, InteractionsTrainTest, testing::Values("bpr", "ials"),
                         [](auto const& info) { return std::string(info.param); });

TEST_P(InteractionsTrainTest, RecommendsItemsOfTheUsersTaste) {
  auto const summary = run_model("run", {"train.epochs=12", "run.ranks=2"});
  EXPECT_EQ(summary.at("users"), kUsers);
  for (char const* split : {"valid", "test"}) {
    auto const& json = summary.at(split);
    EXPECT_GT(json.at("recall@10"), 0.4) << split;
    EXPECT_GT(json.at("ndcg@10"), 0.2) << split;
    EXPECT_LE(json.at("recall@5"), json.at("recall@10")) << split;
    EXPECT_LT(json.at("popularity").at("recall@10"), 0.3) << split;
    EXPECT_GT(json.at("interactions"), 30) << split;
  }
  auto const reports = lines("run", "loss");
  EXPECT_LT(reports.back().at("loss"), reports.front().at("loss"));

  SavedRun const saved = open_run(folder_.path() / "run", {});
  std::vector<std::string> notices;
  std::string const text =
      recommend_in_run(folder_.path() / "run", {}, {{.name = "u1"}, {.name = "u1000"}, {.name = "u2"}}, 5, notices);
  EXPECT_THAT(notices, testing::ElementsAre("left out 1 of 3 users, not in the training data: 'u1000'"));
  EXPECT_THAT(text, HasSubstr("u1\n  "));
  std::size_t right = 0, all = 0;
  for (std::size_t at = text.find("  i"); at != std::string::npos; at = text.find("  i", at + 1), ++all) {
    right += std::stoul(text.substr(at + 3)) % kTastes == (all < 5 ? 1U : 2U) ? 1 : 0;
  }
  EXPECT_EQ(all, 10U);
  EXPECT_GE(right, 8U) << text;
  InteractionSet const& set = dynamic_cast<InteractionData const&>(*saved.data).set();
  for (Interaction const& pair : set.train.of(*set.users.find("u1"))) {
    std::string const chosen = fmt::format("  {}\n", set.items.name(pair.item));
    EXPECT_THAT(text.substr(0, text.find("u2\n")), Not(HasSubstr(chosen)));
  }
  EXPECT_THAT(nearest_in_run(saved, {{.name = "i0"}}, 3, notices), HasSubstr("i0\n"));
  expect_error([&] { recommend_in_run(folder_.path() / "run", {}, {{.name = "u1000"}}, 5, notices); },
               {"there is no user 'u1000'"});
}

TEST_P(InteractionsTrainTest, BitsAreIndependentOfRanksAndThreads) {
  auto const alone = result(run_model("alone", {}));
  for (char const* setting : {"run.ranks=2", "run.ranks=3", "run.ranks=4", "run.threads=2", "train.lookahead=1"}) {
    EXPECT_EQ(result(run_model(setting, {setting})), alone) << setting;
  }
  EXPECT_EQ(result(run_model("adaptive", {"run.ranks=4", "placement.policy=adaptive"})), alone);
  EXPECT_NE(result(run_model("seed", {"train.seed=2"})), alone);
}

TEST_P(InteractionsTrainTest, ResumedRunEqualsUninterruptedRun) {
  auto whole = result(run_model("whole", {"train.steps=7"}));
  for (char const* stop : {"train.steps=3", "train.steps=4", "train.steps=5"}) {
    run_model(stop, {stop, "run.ranks=3"});
    auto resumed = result(run_model(stop, {"train.steps=7", "run.ranks=2"}, true));
    for (auto* one : {&whole, &resumed}) {
      one->erase("loss");  // since the last report
      one->erase("best");
      one->erase("samples");
    }
    EXPECT_EQ(resumed, whole) << stop;
  }
  expect_error([&] { run_model("train.steps=3", {"train.steps=8", "model.dim=9"}, true); }, {"model.dim = 8"});
}

TEST_F(InteractionsRunTest, EachOptionHasAnEffectOnItsModel) {
  auto const hash = [&](std::string const& name, Settings const& settings) {
    return run(name, settings).at("table_hash").get<std::string>();
  };
  std::map<std::string, Settings> const of_model{
      {"bpr",
       {"model.negatives=3", "optimizer.l2=0.1", "model.l2=0.1", "optimizer.learning_rate=0.3",
        "model.init_scale=0.2"}},
      {"ials", {"model.unobserved_weight=0.3", "model.l2=0.1", "train.batch_size=200"}}};
  for (auto const& [model, settings] : of_model) {
    std::string const name = "model.name=" + model, usual = hash(model, {"train.steps=4", name});
    for (std::string const& setting : settings) {
      EXPECT_NE(hash(model + setting, {"train.steps=4", name, setting}), usual) << setting;
      if (model == "bpr" || setting.starts_with("train") || setting == "model.l2=0.1") continue;
      expect_error([&] { config({"model.name=bpr", setting}); }, {setting.c_str(), "has no effect here"});
    }
  }
  for (char const* setting : {"model.negatives=3", "optimizer.kind=adam", "optimizer.l2=0.1", "optimizer.epsilon=0.1",
                              "optimizer.schedule=linear", "placement.initial=graph"}) {
    expect_error([&] { config({"model.name=ials", setting}); }, {setting, "has no effect here"});
  }
  // Rows are elsewhere, with the same values.
  EXPECT_EQ(hash("placed", {"placement.initial=graph", "run.ranks=2"}), hash("hash", {"run.ranks=2"}));
  EXPECT_LT(lines("placed", "remote_keys").back().at("remote_keys"),
            lines("hash", "remote_keys").back().at("remote_keys"));
  for (char const* setting : {"placement.staleness=4", "gradient_compression.codec=int8"}) {
    expect_error([&] { config({"model.name=ials", setting}); }, {"arrive late", "remove them"});
  }
}

// Rows of an exported table by name.
std::map<std::string, std::vector<float>> exported(std::filesystem::path const& folder, std::string const& kind,
                                                   std::size_t dim) {
  std::map<std::uint64_t, std::string> names;
  std::ifstream lines(folder / (kind + "s.tsv"));
  for (std::string line; std::getline(lines, line);) names[std::stoull(line)] = line.substr(line.find('\t') + 1);
  std::ifstream keys(folder / "rows" / (kind + "s.keys.bin"), std::ios::binary);
  std::ifstream values(folder / "rows" / (kind + "s.values.bin"), std::ios::binary);
  std::map<std::string, std::vector<float>> rows;
  for (std::uint64_t key = 0; keys.read(reinterpret_cast<char*>(&key), sizeof key);) {
    std::vector<float>& row = rows[names.at(key)];
    row.resize(dim);
    values.read(reinterpret_cast<char*>(row.data()), static_cast<std::streamsize>(dim * sizeof(float)));
  }
  return rows;
}

// The derivative of the objective by each item's row is 0 after an epoch, which ends with items: computed from the
// exported rows of users.
TEST_F(InteractionsRunTest, IalsSolvesTheNormalEquations) {
  constexpr double kWeight = 0.05, kL2 = 0.01;
  constexpr std::size_t kDim = 8;
  run("run", {"model.name=ials", "data.valid_share=0", "data.test_share=0", "train.epochs=2", "run.ranks=2",
              fmt::format("model.unobserved_weight={}", kWeight), fmt::format("model.l2={}", kL2)});
  export_run(folder_.path() / "run", {}, folder_.path() / "out", ModelFormat::kFlat);
  auto const users = exported(folder_.path() / "out", "user", kDim);
  auto const items = exported(folder_.path() / "out", "item", kDim);
  ASSERT_EQ(users.size(), kUsers);
  std::map<std::string, std::set<std::string>> chosen_by;
  std::istringstream lines(tasteful_choices());
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string user;
    fields >> user;
    for (std::string item; fields >> item;) chosen_by[item].insert(user);
  }
  ASSERT_EQ(items.size(), chosen_by.size());
  auto const product = [](std::vector<float> const& a, std::vector<float> const& b) {
    double sum = 0;
    for (std::size_t j = 0; j < kDim; ++j) sum += double{a[j]} * b[j];
    return sum;
  };
  for (auto const& [name, item] : items) {
    auto const& mine = chosen_by.at(name);
    std::vector<double> derivative;
    for (float const x : item) {
      derivative.push_back(kL2 * (static_cast<double>(mine.size()) + kWeight * kUsers) * double{x});
    }
    double scale = 0;
    for (auto const& [user, row] : users) {
      double const score = product(item, row), error = mine.contains(user) ? score - 1 : 0;
      for (std::size_t j = 0; j < kDim; ++j) derivative[j] += (error + kWeight * score) * double{row[j]};
      scale += mine.contains(user) ? std::sqrt(product(row, row)) : 0;
    }
    for (double const d : derivative) EXPECT_NEAR(d, 0, 1e-3 * scale) << name;
  }
}

TEST_F(InteractionsRunTest, ExportsNamesOfItemsAndUsers) {
  run("run", {"train.steps=2"});
  export_run(folder_.path() / "run", {}, folder_.path() / "out", ModelFormat::kNpy);
  for (char const* file : {"items.tsv", "users.tsv", "model.json", "rows/items.values.npy", "rows/users.values.npy"}) {
    EXPECT_TRUE(std::filesystem::exists(folder_.path() / "out" / file)) << file;
  }
  export_run(folder_.path() / "run", {}, folder_.path() / "text", ModelFormat::kWord2vec);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "text/vectors.txt"));
}

// Items of held-out samples that training has not seen are in no file of vectors.
TEST_F(InteractionsRunTest, ExportsNoNamesWithoutRows) {
  folder_.write("test.txt", "u1 i1 new1 new2\nu2 new1\nnobody i3\n");
  run("run", {"data.valid_share=0", "data.test=test.txt", "train.epochs=2"});
  auto const text_of = [&](char const* file) {
    std::ifstream in(folder_.path() / file);
    return std::string{std::istreambuf_iterator<char>(in), {}};
  };
  std::string const left_out = "left out 2 items of 62, which training has not seen: they have no rows";
  EXPECT_THAT(export_run(folder_.path() / "run", {}, folder_.path() / "text", ModelFormat::kWord2vec),
              testing::ElementsAre(left_out));
  EXPECT_THAT(text_of("text/vectors.txt"), AllOf(HasSubstr("60 8\n"), Not(HasSubstr("new"))));
  EXPECT_THAT(export_run(folder_.path() / "run", {}, folder_.path() / "arrays", ModelFormat::kFlat),
              testing::ElementsAre(left_out, HasSubstr("left out 1 user of 101")));
  EXPECT_THAT(text_of("arrays/items.tsv"), Not(HasSubstr("new")));
  EXPECT_THAT(text_of("arrays/users.tsv"), Not(HasSubstr("nobody")));
  EXPECT_EQ(exported(folder_.path() / "arrays", "item", 8).size(), 60U);
  std::vector<std::string> notices;
  SavedRun const saved = open_run(folder_.path() / "run", {});
  expect_error([&] { nearest_in_run(saved, {{.name = "new1"}}, 3, notices); }, {"'new1' is not in the training data"});
  EXPECT_THAT(nearest_in_run(saved, {{.name = "i1"}}, 100, notices), Not(HasSubstr("new")));
}

// The losses of users and of items are those of two problems, and ials has no learning rate. The first users have an
// item each, which is easy to fit.
TEST_F(InteractionsRunTest, IalsDoesNotDiverge) {
  std::string text;
  for (int u = 0; u < 16; ++u) text += fmt::format("u{0} own{0}\n", u);
  for (int v = 0; v < 100; ++v) {
    for (int k = 0; k < 5; ++k) text += fmt::format("v{} i{}\n", v, (v * v + 7 * k * k * v) % 20);
  }
  folder_.write("choices.txt", text);
  Settings settings{"model.name=ials",     "data.valid_share=0",
                    "data.test_share=0",   "train.steps=10",
                    "model.l2=0.0001",     "model.dim=16",
                    "train.batch_size=16", "run.report_every=1",
                    "model.init_scale=1",  "model.unobserved_weight=0.0001"};
  testing::internal::CaptureStderr();
  run("run", settings);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr("diverged")));
  auto const reports = lines("run", "loss");
  EXPECT_GT(reports.back().at("loss"), 2 * reports.front().at("loss").get<double>());
}

}  // namespace
}  // namespace gpups::trainer::interactions_train_test
