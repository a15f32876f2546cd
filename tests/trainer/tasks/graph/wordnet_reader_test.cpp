// SPDX-License-Identifier: Apache-2.0
// A WordNet database becomes a graph whose training triples do not contain the held-out ones in another form.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trainer/tasks/graph/reader.hpp"

namespace gpups::trainer::wordnet_reader_test {
namespace {

using test::expect_error;
using test::TemporaryFolder;

char const* const kLicence = "  1 Some terms.  \n";

// Writes a database of animals, two of which have the name dog, and words of other kinds.
void write_database(TemporaryFolder const& folder) {
  folder.write("data.noun",
               std::string(kLicence) +
                   "00000100 03 n 01 animal 0 002 ~ 00000200 n 0000 ~ 00000300 n 0000 | a living thing  \n"
                   "00000200 05 n 02 dog 0 Domestic_dog 0 002 @ 00000100 n 0000 #m 00000300 n 0000 | barks | loudly  \n"
                   "00000300 05 n 01 Dog 1 003 @ 00000100 n 0000 %m 00000200 n 0000 = 00000100 a 0000 | a pack  \n");
  folder.write("data.verb", std::string(kLicence) +
                                "00000100 30 v 01 bark 0 002 $ 00000200 v 0000 + 00000200 n 0101 01 + 02 00 | sound  \n"
                                "00000200 30 v 01 howl 0 001 $ 00000100 v 0000 01 + 02 00 | sound  \n");
  folder.write("data.adj",
               std::string(kLicence) +
                   "00000100 00 a 01 loud(p) 0 003 & 00000200 a 0000 = 00000300 n 0000 ! 00000200 a 0101 | x  \n"
                   "00000200 00 s 01 noisy 0 001 & 00000100 a 0000 | x  \n");
  folder.write("data.adv", kLicence);
  folder.write("index.noun", std::string(kLicence) +
                                 "animal n 1 1 ~ 1 0 00000100  \n"
                                 "dog n 2 3 @ #m %m 2 1 00000300 00000200  \n"
                                 "domestic_dog n 1 1 @ 1 0 00000200  \n");
  folder.write("index.verb", std::string(kLicence) + "bark v 1 1 $ 1 0 00000100  \nhowl v 1 1 $ 1 0 00000200  \n");
  folder.write("index.adj", std::string(kLicence) + "loud a 1 2 & = 1 0 00000100  \nnoisy a 1 1 & 1 0 00000200  \n");
  folder.write("index.adv", kLicence);
}

using Fact = std::string;
std::set<Fact> facts(Dataset const& d, std::vector<Triple> const& triples) {
  std::set<Fact> all;
  for (Triple const& t : triples) {
    all.insert(
        fmt::format("{} {} {}", d.entities.name(t.subject), d.relations.name(t.relation), d.entities.name(t.object)));
  }
  EXPECT_EQ(all.size(), triples.size());
  return all;
}

DataConfig config_of(TemporaryFolder const& folder) {
  return {.reader = "wordnet", .folder = folder.path().string(), .valid_share = 0, .test_share = 0};
}

TEST(WordnetReader, KeepsOneOfTwoInverseRelations) {
  TemporaryFolder const folder;
  write_database(folder);
  Dataset const d = read_wordnet(config_of(folder));
  // The first sense of "dog" is the pack, by the order of the index.
  EXPECT_EQ(facts(d, d.train), (std::set<Fact>{"dog.n.02 hypernym animal.n.01", "dog.n.01 hypernym animal.n.01",
                                               "dog.n.01 member_meronym dog.n.02", "dog.n.01 attribute loud.a.01",
                                               "bark.v.01 verb_group howl.v.01", "howl.v.01 verb_group bark.v.01",
                                               "loud.a.01 similar_to noisy.s.01", "noisy.s.01 similar_to loud.a.01"}));
}

TEST(WordnetReader, RejectsInvalidDatabase) {
  TemporaryFolder const folder;
  expect_error([&] { read_wordnet(config_of(folder)); }, {"data.noun cannot be opened"});
  write_database(folder);
  folder.write("data.verb", "00000100 30 v 01 bark 0 001 $ 00000200\n");
  expect_error([&] { read_wordnet(config_of(folder)); }, {"data.verb:1", "wndb(5WN)"});
  folder.write("data.verb", std::string(kLicence) + "abc\n");
  expect_error([&] { read_wordnet(config_of(folder)); }, {"data.verb:2"});
  write_database(folder);
  folder.write("data.verb", "00000100 30 v 01 bark 0 001 $ 00000900 v 0000 | x\n00000200 30 v 01 howl 0 000 | x\n");
  expect_error([&] { read_wordnet(config_of(folder)); }, {"bark.v.01", "has no target"});
  write_database(folder);
  folder.write("index.verb", "bark v 1 1 $ 1 0 00000100\n");
  expect_error([&] { read_wordnet(config_of(folder)); }, {"do not list 'howl'"});
  folder.write("index.verb", "bark v 1 1 $ 1 0 00000800\n");
  expect_error([&] { read_wordnet(config_of(folder)); }, {"index.verb:1"});
  write_database(folder);
  folder.write("data.noun", "00000100 03 n 01 animal 0 000 | x\n00000100 03 n 01 animal 0 000 | x\n");
  expect_error([&] { read_wordnet(config_of(folder)); }, {"data.noun:2"});
}

// Checks properties that every split must have.
void expect_sound_split(Dataset const& d) {
  std::set<std::uint32_t> entities, relations;
  std::set<std::pair<std::uint32_t, std::uint32_t>> learnt, ranked;
  for (Triple const& t : d.train) {
    entities.insert({t.subject, t.object});
    relations.insert(t.relation);
    learnt.insert(std::minmax(t.subject, t.object));
  }
  for (auto const* split : {&d.valid, &d.test}) {
    for (Triple const& t : *split) {
      EXPECT_TRUE(entities.contains(t.subject) && entities.contains(t.object) && relations.contains(t.relation));
      EXPECT_FALSE(learnt.contains(std::minmax(t.subject, t.object)));
      if (split == &d.valid) {
        ranked.insert(std::minmax(t.subject, t.object));
      } else {
        EXPECT_FALSE(ranked.contains(std::minmax(t.subject, t.object)));
      }
    }
  }
}

TEST(WordnetReader, HeldOutTriplesAreNotNeededForTraining) {
  TemporaryFolder const folder;
  write_database(folder);
  DataConfig config = config_of(folder);
  config.valid_share = 0.45, config.test_share = 0.45;
  Dataset const d = read_wordnet(config);
  // Verbs and adjectives have one fact each, which training needs. One of the three facts about nouns can be held out.
  EXPECT_EQ(d.valid.size() + d.test.size(), 1U);
  expect_sound_split(d);
}

class InstalledWordnet : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/usr/share/wordnet/data.noun")) GTEST_SKIP() << "wordnet-base is not installed";
  }
  DataConfig config_{.reader = "wordnet", .folder = "/usr/share/wordnet"};
};

TEST_F(InstalledWordnet, AllRelationsAreRead) {
  Dataset const d = read_wordnet(config_);
  std::map<std::string, std::size_t> count;
  for (auto const* split : {&d.train, &d.valid, &d.test}) {
    for (Triple const& t : *split) ++count[std::string(d.relations.name(t.relation))];
  }
  EXPECT_EQ(count["hypernym"], 75850U + 13239U);
  EXPECT_EQ(count["instance_hypernym"], 8577U);
  EXPECT_EQ(count["member_meronym"], 12293U);
  EXPECT_EQ(count["part_meronym"], 9097U);
  EXPECT_EQ(count["substance_meronym"], 797U);
  EXPECT_EQ(count["topic_domain"], 1099U + 37U + 4250U + 1257U);
  EXPECT_EQ(count["attribute"], 639U);
  EXPECT_EQ(count["verb_group"], 1748U);
  EXPECT_TRUE(d.entities.find("dog.n.01").has_value());
  double const all = static_cast<double>(d.train.size() + d.valid.size() + d.test.size());
  EXPECT_NEAR(static_cast<double>(d.valid.size()) / all, 0.02, 0.001);
  EXPECT_NEAR(static_cast<double>(d.test.size()) / all, 0.02, 0.001);
  expect_sound_split(d);
}

TEST_F(InstalledWordnet, SplitDependsOnTheSeed) {
  std::uint64_t const once = read_wordnet(config_).digest();
  EXPECT_EQ(read_wordnet(config_).digest(), once);
  config_.split_seed = 2;
  EXPECT_NE(read_wordnet(config_).digest(), once);
}

}  // namespace
}  // namespace gpups::trainer::wordnet_reader_test
