// SPDX-License-Identifier: Apache-2.0
// Text of clicks with other separators, quotes, headings, comments or orders of columns gives the samples of the usual
// text.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trainer/tasks/click/click_data.hpp"
#include "trainer/tasks/click/click_kind.hpp"
#include "trainer/tasks/click/samples.hpp"

namespace gpups::trainer::click_columns_test {
namespace {

using test::expect_error;

Layout const kLayout = make_layout(1, 2);

class ClickColumns : public testing::Test {
 protected:
  // Reads files with these texts, one after the other.
  Samples read(std::vector<std::string> const& texts, TableSettings const& table = {}, double bad_share_max = 0) {
    std::vector<std::filesystem::path> files;
    for (std::string const& text : texts) files.push_back(folder_.write("part" + std::to_string(files.size()), text));
    notices_.clear();
    return read_samples_text(files, kLayout, {.bad_share_max = bad_share_max, .table = table}, notices_);
  }
  std::uint64_t digest(std::string const& text, TableSettings const& table = {}) {
    return read({text}, table).digest();
  }
  bool says(std::string const& words) const {
    return std::any_of(notices_.begin(), notices_.end(),
                       [&](std::string const& notice) { return notice.find(words) != notice.npos; });
  }

  test::TemporaryFolder folder_;
  std::vector<std::string> notices_;
};

constexpr char const* kUsual = "1\t5\tabc\tx,y\n0\t\tdef\t\n1\t-2.5\tabc\tz\n";

TEST_F(ClickColumns, AreFound) {
  std::uint64_t const usual = digest(kUsual);
  EXPECT_TRUE(notices_.empty());
  EXPECT_EQ(digest("1,5,abc,\"x,y\"\n0,,def,\n1,-2.5,abc,z\n"), usual);
  EXPECT_TRUE(says("separated by commas; columns 1, 2, 3, 4; the label is column 1"));
  EXPECT_EQ(digest("label,I1,C1,C2\r\n1,5,abc,\"x,y\"\r\n0,,def,\r\n1,-2.5,abc,z\r\n"), usual);
  EXPECT_TRUE(says("separated by commas, with a heading; columns label, I1, C1, C2; the label is 'label'"));
  EXPECT_EQ(digest("label\tI1\tC1\tC2\n" + std::string(kUsual)), usual);
  EXPECT_EQ(digest("# exported\nlabel,I1,C1,C2\n1,5,abc,\"x,y\"\n0,,def,\n1,-2.5,abc,z\n"), usual);
  EXPECT_EQ(digest("C2\tclick\tI1\tC1\nx,y\t1\t5\tabc\n\t0\t\tdef\nz\t1\t-2.5\tabc\n"), usual);
  EXPECT_TRUE(says("; the label is 'click'"));
  EXPECT_EQ(digest("1\t5\tabc\tx,y\n\n0\t\tdef\t\n1\t-2.5\tabc\tz\n\n"), usual);  // empty lines
}

// The splits of a run, each in a file.
class ClickSplits : public ClickColumns {
 protected:
  std::vector<std::string> notices_of(std::string const& train, std::string const& test,
                                      std::string const& name_of_test = "test") {
    folder_.write("train", train);
    folder_.write("test", test);
    Config config = click_kind().defaults();
    config.data.folder = folder_.path().string();
    config.data.train = "train", config.data.test = name_of_test;
    config.settings<ClickSettings>().numeric_columns = 1;
    config.settings<ClickSettings>().categorical_columns = 2;
    return ClickData(config).notices();
  }
};

TEST_F(ClickSplits, ThatAreTheSameFileAreSaid) {
  auto const said = [&](std::string const& of_test) {
    auto const notices = notices_of("1\t5\tabc\tx\n0\t2\tdef\ty\n", "1\t5\tabc\tx\n0\t2\tdef\ty\n", of_test);
    return std::any_of(notices.begin(), notices.end(), [](auto const& notice) {
      return notice.find("data.test and data.train both name train: ") != notice.npos;
    });
  };
  EXPECT_TRUE(said("train"));
  EXPECT_TRUE(said("tr*"));
  EXPECT_FALSE(said("test"));
}

TEST_F(ClickSplits, HaveTheSameColumns) {
  std::string const train = "click,price,site,app\n1,5,abc,x\n0,2,def,y\n";
  EXPECT_EQ(notices_of(train, "click,price,site,app\n1,5,abc,x\n0,1,abc,x\n").size(), 2U);
  EXPECT_EQ(notices_of(train, "1,5,abc,x\n0,1,abc,x\n").size(), 2U);  // by place, as in training
  expect_error([&] { notices_of(train, "click,price,app,site\n1,5,x,abc\n"); },
               {"test has the columns", "another order"});
  expect_error([&] { notices_of("C1,label,I1,C2\nabc,1,5,x\ndef,0,2,y\n", "abc,1,5,x\n"); },
               {"test has none, and ", "train has a heading"});
}

TEST_F(ClickSplits, OfOneClassAreSaid) {
  std::string const both = "1\t5\tabc\tx\n0\t2\tdef\ty\n", one = "1\t5\tabc\tx\n1\t2\tdef\ty\n";
  EXPECT_TRUE(notices_of(both, both).empty());
  notices_ = notices_of(one, both);
  EXPECT_EQ(notices_.size(), 1U);
  EXPECT_TRUE(says("all 2 samples for the training have the label 1: the model learns no difference"));
  notices_ = notices_of(both, "0.5\t5\tabc\tx\n0.5\t2\tdef\ty\n");
  EXPECT_EQ(notices_.size(), 1U);
  EXPECT_TRUE(says("all 2 samples for the test have the label 0.5: some metrics, such as the AUC, are undefined"));
}

TEST_F(ClickSplits, OfFractionsAreSaid) {
  std::string const clicks = "0.3\t5\tabc\t1\n0\t2\tdef\t0\n0.7\t2\tdef\t1\n";
  notices_ = notices_of(clicks, clicks);
  EXPECT_TRUE(says("labels are fractions, such as 0.3: if another column has the labels, data.columns names it first"));
}

TEST_F(ClickColumns, SaysThatTheFirstLineMayBeAHeading) {
  EXPECT_EQ(read({"0,1,2,3\n1,5,abc,x\n"}).size(), 2U);  // as pandas writes a table without names
  EXPECT_TRUE(says("part0 may be a heading, since it has the numbers of the columns: '0', '1', '2', '3'"));
  read({"0\t1\t2\t3\n1\t5\tabc\tx\n"});
  EXPECT_TRUE(says("part0 may be a heading"));
  read({"0,1,2,3\n1,5,abc,x\n"}, {.heading = "no"});
  EXPECT_FALSE(says("may be a heading"));
}

TEST_F(ClickColumns, AreThoseOfTheSettings) {
  std::uint64_t const usual = digest(kUsual);
  std::string const table = "id,click,site,price,app\n7,1,abc,5,\"x,y\"\n8,0,def,,\n9,1,abc,-2.5,z\n";
  EXPECT_EQ(digest(table, {.columns = {"click", "price", "site", "app"}}), usual);
  EXPECT_TRUE(says("columns click, price, site, app"));
  EXPECT_EQ(digest(table, {.heading = "yes", .columns = {"2", "4", "3", "5"}}), usual);
  EXPECT_EQ(digest("# a comment\n1;5;abc;x,y\n# another\n0;;def;\n1;-2.5;abc;z\n",
                   {.separator = "semicolon", .comment = "#"}),
            usual);
  expect_error([&] { read({table}); }, {"part0 has the columns id, click, site, price, app", "data.columns"});
  expect_error(
      [&] {
        read({table}, {.columns = {"click", "cost", "site", "app"}});
      },
      {"no column \"cost\"", "id, click, site, price, app"});
}

TEST_F(ClickColumns, BadLinesHaveTheirNumbers) {
  std::string const table = "label,I1,C1,C2\n1,5,abc,x\n1,5,abc\n\n1,many,abc,x\n1,5,\"abc,x\n1,5,a,b,c\n";
  expect_error([&] { read({table}); }, {"4 bad lines of 5", "part0:3 has 3 fields, and 4 are needed", "part0:6 ",
                                        "part0:7 has 5 fields", "separated by commas"});
  Samples const samples = read({table}, {}, 1);
  EXPECT_EQ(samples.size(), 1U);
  EXPECT_TRUE(says("skipped 4 bad lines of 5"));
}

TEST_F(ClickColumns, FilesAreReadInOrder) {
  std::string const all = kUsual, first = all.substr(0, all.find('\n') + 1), rest = all.substr(first.size());
  EXPECT_EQ(read({first, rest}).digest(), digest(kUsual));
  EXPECT_EQ(read({first, "label,I1,C1,C2\n0,,def,\n1,-2.5,abc,z\n"}).digest(), digest(kUsual));
  expect_error([&] { read({first, "nothing\n"}); }, {"part1"});
  expect_error([&] { read({"C2\tclick\tI1\tC1\nx,y\t1\t5\tabc\n", rest}); }, {"part1 has none", "part0 has a heading"});
}

}  // namespace
}  // namespace gpups::trainer::click_columns_test
