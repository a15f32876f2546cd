// SPDX-License-Identifier: Apache-2.0
// Runs on a network: vectors of nodes learn its communities, have the same bits on any number of ranks and threads, and
// can be resumed and exported.
#include <gmock/gmock.h>

#include <fstream>
#include <map>

#include "tests/support/expect_error.hpp"
#include "tests/trainer/run/train_fixture.hpp"
#include "trainer/base/random.hpp"
#include "trainer/run/saved_run.hpp"
#include "trainer/tasks/nodes/node_data.hpp"

namespace gpups::trainer::nodes_train_test {
namespace {

using test::expect_error;

constexpr std::uint64_t kCommunities = 4, kMembers = 8;

// Each node has edges within its community, and one of eight edges leads to another. Node c2m5 is in community 2.
std::string community_edges() {
  std::string text;
  for (std::uint64_t i = 0; i < 300; ++i) {
    std::uint64_t const community = random_bits(1, i) % kCommunities;
    std::uint64_t const other = i % 8 == 0 ? random_bits(2, i) % kCommunities : community;
    text +=
        fmt::format("c{}m{} c{}m{}\n", community, random_bits(3, i) % kMembers, other, random_bits(4, i) % kMembers);
  }
  return text;
}

class NodesTrainTest : public RunTest {
 protected:
  NodesTrainTest()
      : RunTest({"data.reader=edges", "model.dim=16", "model.negatives=5", "model.shared_negatives=10",
                 "model.window=3", "model.walks=2", "model.walk_length=40", "optimizer.learning_rate=0.1",
                 "train.batch_size=8"}) {
    folder_.write("edges.txt", community_edges());
  }
};

TEST_F(NodesTrainTest, NearestNodesAreInTheSameCommunity) {
  auto const summary = run("run", {"train.epochs=10", "run.ranks=2"});
  EXPECT_EQ(summary.at("nodes"), kCommunities * kMembers);
  EXPECT_EQ(summary.at("walks_per_s"), summary.at("samples_per_s"));
  SavedRun const saved = open_run(folder_.path() / "run", {});
  for (std::uint64_t c = 0; c < kCommunities; ++c) {
    std::vector<std::string> notices;
    std::string const near = nearest_in_run(saved, {{.name = fmt::format("c{}m0", c)}}, kMembers - 1, notices);
    std::size_t own = 0;
    for (std::size_t at = near.find("  c"); at != std::string::npos; at = near.find("  c", at + 1)) {
      own += near[at + 3] == static_cast<char>('0' + c) ? 1 : 0;
    }
    EXPECT_GE(own, kMembers - 2) << near;
  }
}

TEST_F(NodesTrainTest, BitsAreIndependentOfRanksAndThreads) {
  auto const with = [&](std::string const& setting) {
    return result(run(setting, {"model.p=4", "model.q=0.5", setting}));
  };
  auto const alone = with("run.ranks=1");
  for (char const* setting : {"run.ranks=2", "run.ranks=3", "run.ranks=4", "run.threads=2", "train.lookahead=1"}) {
    EXPECT_EQ(with(setting), alone) << setting;
  }
  EXPECT_NE(result(run("plain", {})), alone);
}

TEST_F(NodesTrainTest, ResumedRunEqualsUninterruptedRun) {
  auto whole = result(run("whole", {"train.steps=30"}));
  run("run", {"train.steps=13", "run.ranks=3"});
  auto resumed = result(run("run", {"train.steps=30", "run.ranks=2"}, true));
  for (auto* one : {&whole, &resumed}) one->erase("loss");  // since the last report
  EXPECT_EQ(resumed, whole);
  expect_error([&] { run("run", {"train.steps=31", "model.walks=3"}, true); }, {"model.walks = 2"});
  folder_.write("edges.txt", community_edges() + "c0m0 new\n");
  expect_error([&] { run("run", {"train.steps=31"}, true); }, {"other data"});
}

// Edges between members of a community are found, and the metrics do not depend on ranks.
TEST_F(NodesTrainTest, HeldOutEdgesHaveAnAuc) {
  Settings const held_out{"train.epochs=12", "data.valid_share=0.2", "data.test_share=0.2", "train.validate_every=1"};
  auto const with = [&](std::string const& setting) {
    Settings settings = held_out;
    settings.push_back(setting);
    return run(setting, settings);
  };
  auto const alone = with("run.ranks=1"), three = with("run.ranks=3");
  for (char const* split : {"valid", "test"}) {
    EXPECT_GT(alone.at(split).at("auc").get<double>(), 0.75) << split;
    EXPECT_LT(alone.at(split).at("auc").get<double>(), 1) << split;
    EXPECT_GT(alone.at(split).at("pairs").get<int>(), 20) << split;
    EXPECT_EQ(three.at(split), alone.at(split));
  }
  auto const untrained = with("optimizer.learning_rate=1e-9");
  EXPECT_NEAR(untrained.at("test").at("auc").get<double>(), 0.5, 0.15);
}

// Each node has an edge to each other one, in one of the splits, so there is nothing to compare an edge with.
TEST_F(NodesTrainTest, HeldOutEdgesAreNotComparedWithEachOther) {
  std::string complete;
  for (int a = 0; a < 12; ++a) {
    for (int b = 0; b < a; ++b) complete += fmt::format("{} {}\n", a, b);
  }
  folder_.write("edges.txt", complete);
  auto const metrics = run("run", {"data.valid_share=0.2", "data.test_share=0.2"});
  for (char const* split : {"valid", "test"}) EXPECT_EQ(metrics.at(split).value("auc", 2.0), 2.0) << split;
}

// All pairs of 12 nodes are edges, but for one of node 10. So of the held-out ones, only two can be compared.
TEST_F(NodesTrainTest, FewComparisonsAreSaid) {
  std::string const held_out = "10 11\n10 12\n13 14\n15 16\n17 18\n";
  std::string train;
  for (int a = 10; a < 22; ++a) {
    for (int b = a + 1; b < 22; ++b) {
      std::string const edge = fmt::format("{} {}\n", a, b);
      if (held_out.find(edge) == std::string::npos && edge != "10 21\n") train += edge;
    }
  }
  folder_.write("edges.txt", train);
  folder_.write("test.txt", held_out);
  testing::internal::CaptureStderr();
  run("run", {"train.epochs=2", "data.test=test.txt"});
  EXPECT_NE(testing::internal::GetCapturedStderr().find(
                "of 5 pairs, with 32 of 80 comparisons: nearly all other pairs are known ones"),
            std::string::npos);
}

TEST_F(NodesTrainTest, SmallNetworkHasSmallBatches) {
  EXPECT_GE(run("run", {"train.batch_size=0", "train.epochs=2"}).at("steps").get<int>(), 80);
  expect_error([&] { config({"train.batch_size=-1"}); }, {"train.batch_size", "out of range"});
}

TEST_F(NodesTrainTest, EachOptionHasAnEffect) {
  auto const hash = [&](char const* name, Settings const& settings) {
    return run(name, settings).at("table_hash").get<std::string>();
  };
  std::string const usual = hash("usual", {"train.steps=4"});
  for (char const* setting : {"model.walks=3", "model.walk_length=39", "model.p=2", "model.q=2", "model.negatives=6",
                              "model.shared_negatives=11", "model.window=2", "model.l2=0.1", "data.directed=true"}) {
    EXPECT_NE(hash(setting, {"train.steps=4", setting}), usual) << setting;
  }
  for (char const* setting :
       {"model.subsample=0.1", "model.min_count=2", "eval.words_max=9", "placement.initial=graph", "model.n3=0.1"}) {
    expect_error([&] { config({setting}); }, {setting, "has no effect here"});
  }
}

// A vector file of word2vec: names and rows.
std::map<std::string, std::vector<float>> read_vectors(std::filesystem::path const& path, bool binary) {
  std::ifstream file(path, std::ios::binary);
  std::size_t rows = 0, dim = 0;
  file >> rows >> dim;
  std::map<std::string, std::vector<float>> vectors;
  for (std::size_t i = 0; i < rows; ++i) {
    std::string name;
    file >> name;
    std::vector<float>& row = vectors[name];
    row.resize(dim);
    if (binary) {
      file.get();
      file.read(reinterpret_cast<char*>(row.data()), static_cast<std::streamsize>(dim * sizeof(float)));
    } else {
      for (float& x : row) file >> x;
    }
  }
  EXPECT_TRUE(file.good());
  EXPECT_EQ(file.get(), '\n');
  EXPECT_EQ(file.get(), std::char_traits<char>::eof());
  return vectors;
}

TEST_F(NodesTrainTest, ExportsFilesOfWord2vec) {
  run("run", {"train.steps=3", "run.ranks=2"});
  auto const exported = [&](std::string const& name, ModelFormat format) {
    export_run(folder_.path() / "run", {}, folder_.path() / name, format);
    return folder_.path() / name;
  };
  auto const text = read_vectors(exported("text", ModelFormat::kWord2vec) / "vectors.txt", false);
  auto const binary = read_vectors(exported("binary", ModelFormat::kWord2vecBinary) / "vectors.bin", true);
  EXPECT_EQ(text.size(), kCommunities * kMembers);
  EXPECT_EQ(text, binary);

  // The same rows as in an export of arrays, by key.
  std::filesystem::path const arrays = exported("arrays", ModelFormat::kFlat);
  EXPECT_TRUE(std::filesystem::exists(arrays / "model.json"));
  std::ifstream names(arrays / "nodes.tsv");
  std::map<std::uint64_t, std::string> by_key;
  for (std::string line; std::getline(names, line);) {
    by_key[std::stoull(line)] = line.substr(line.find('\t') + 1);
  }
  std::ifstream keys(arrays / "rows/nodes.keys.bin", std::ios::binary),
      values(arrays / "rows/nodes.values.bin", std::ios::binary);
  std::uint64_t key = 0;
  std::size_t rows = 0;
  for (std::vector<float> row(16); keys.read(reinterpret_cast<char*>(&key), sizeof key); ++rows) {
    values.read(reinterpret_cast<char*>(row.data()), 16 * sizeof(float));
    EXPECT_EQ(row, text.at(by_key.at(key)));
  }
  EXPECT_EQ(rows, text.size());
}

// The edges of some leaves are held out, all of them: no walk reaches these nodes.
TEST_F(NodesTrainTest, NodesWithoutEdgesForTrainingHaveNoVectors) {
  std::string text = community_edges();
  for (int i = 0; i < 40; ++i) text += fmt::format("c0m0 leaf{}\n", i);
  folder_.write("edges.txt", text);
  run("run", {"train.epochs=2", "data.test_share=0.3"});
  auto const notices = export_run(folder_.path() / "run", {}, folder_.path() / "text", ModelFormat::kWord2vec);
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_THAT(notices[0], testing::HasSubstr("nodes of 72, which training has not seen: they have no rows"));
  auto const vectors = read_vectors(folder_.path() / "text/vectors.txt", false);
  SavedRun const saved = open_run(folder_.path() / "run", {});
  Network const& network = dynamic_cast<NodeData const&>(*saved.data).network();
  std::size_t alone = 0;
  for (std::uint32_t n = 0; n < network.nodes().size(); ++n) {
    std::string const name(network.nodes().name(n));
    EXPECT_EQ(vectors.contains(name), !network.neighbours(n).empty()) << name;
    if (!network.neighbours(n).empty()) continue;
    std::vector<std::string> said;
    if (alone++ > 0) continue;
    expect_error([&] { nearest_in_run(saved, {{.name = name}}, 3, said); },
                 {name.c_str(), "was not used in training (its row has not been trained"});
    EXPECT_THAT(nearest_in_run(saved, {{.name = "c0m0"}, {.name = name}}, 100, said),
                testing::Not(testing::HasSubstr("  " + name + "\n")));
    EXPECT_THAT(said, testing::ElementsAre(testing::HasSubstr("left out 1 of 2 nodes, not in the training data: ")));
  }
  EXPECT_GT(alone, 3U);
  EXPECT_EQ(vectors.size() + alone, 72U);
}

// A program that reads a vector file would end such names at the white space.
TEST_F(NodesTrainTest, FilesOfWord2vecHoldNoWhiteSpace) {
  folder_.write("edges.txt", "a,New York\na,b\nb,c\nc,Los Angeles\nc,d\u00a0e\n");
  run("run", {"train.steps=3"});
  auto const exported = [&](ModelFormat format) {
    export_run(folder_.path() / "run", {}, folder_.path() / "out", format);
  };
  for (ModelFormat const format : {ModelFormat::kWord2vec, ModelFormat::kWord2vecBinary}) {
    expect_error([&] { exported(format); },
                 {"3 nodes of 6 cannot be in a file of word2vec", "such as 'New York' (", "--format npy"});
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / "out"));
  }
  exported(ModelFormat::kNpy);
  std::ifstream names(folder_.path() / "out" / "nodes.tsv");
  std::string const text{std::istreambuf_iterator<char>(names), {}};
  EXPECT_THAT(text, testing::HasSubstr("\tNew York\n"));
}

}  // namespace
}  // namespace gpups::trainer::nodes_train_test
