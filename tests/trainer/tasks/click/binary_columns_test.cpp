// SPDX-License-Identifier: Apache-2.0
// Binary files of clicks keep the names of their columns, which the splits of a run and files to predict must have in
// the same order, and settings of text have no effect on them.
#include <gmock/gmock.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/click_checksums.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trainer/run/saved_run.hpp"
#include "trainer/run/train.hpp"
#include "trainer/tasks/click/click_data.hpp"
#include "trainer/tasks/click/click_kind.hpp"
#include "trainer/tasks/click/text/convert.hpp"

namespace gpups::trainer::binary_columns_test {
namespace {

using test::expect_error;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

using Names = std::vector<std::string>;
using Notices = std::vector<std::string>;

Layout const kColumns = make_layout(1, 2);
constexpr char kHeading[] = "click,price,site,app\n", kOther[] = "click,price,app,site\n",
               kRows[] = "1,5,abc,x\n0,2,def,y\n1,4,abc,y\n";

class BinaryColumns : public testing::Test {
 protected:
  std::filesystem::path convert(std::string const& name, std::string const& text, TableSettings const& table = {}) {
    auto const binary = folder_.path() / name;
    done_ = convert_samples(folder_.write("text", text), binary, kColumns, {.table = table});
    return binary;
  }
  Config config(std::string const& train, std::string const& test) const {
    return parse_config("", "test", folder_.path(),
                        {"data.reader=clicks", "data.train=" + train, "data.test=" + test, "data.numeric_columns=1",
                         "data.categorical_columns=2", "model.name=logistic", "run.device=host", "train.steps=2",
                         "train.batch_size=2"});
  }
  Notices notices_of(std::string const& train, std::string const& test) const {
    return ClickData(config(train, test)).notices();
  }
  static std::string bytes_of(std::filesystem::path const& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  test::TemporaryFolder folder_;
  Converted done_;
};

TEST_F(BinaryColumns, KeepTheNamesOfAHeading) {
  auto const binary = convert("a.bin", std::string(kHeading) + kRows);
  EXPECT_THAT(open_samples(binary).names(), ElementsAre("click", "price", "site", "app"));
  EXPECT_THAT(done_.columns,
              HasSubstr("text: the label is 'click'; numbers I1 = 'price'; categories C1 = 'site', C2 = 'app'"));
  std::uint64_t const digest = open_samples(binary).digest();

  // In an order that the settings name, by their names or numbers.
  std::string const table = "id,app,click,site,price\n7,x,1,abc,5\n8,y,0,def,2\n9,y,1,abc,4\n";
  for (Names const& columns : {Names{"click", "price", "site", "app"}, Names{"3", "5", "4", "2"}}) {
    auto const same = convert("b.bin", table, {.columns = columns});
    EXPECT_THAT(open_samples(same).names(), ElementsAre("click", "price", "site", "app"));
    EXPECT_EQ(open_samples(same).digest(), digest);
  }
}

TEST_F(BinaryColumns, WithoutAHeadingHaveNoNames) {
  auto const binary = convert("a.bin", kRows);
  EXPECT_TRUE(open_samples(binary).names().empty());
  EXPECT_EQ(test::header_of(bytes_of(binary)).version, 1U);  // which older programs read
  EXPECT_THAT(done_.columns, HasSubstr("the label is column 1; numbers I1 = column 2; columns 3 to 4 are the "
                                       "categories C1 to C2"));
  convert("a.bin", kRows, {.columns = {"1", "2", "4", "3"}});
  EXPECT_THAT(done_.columns, HasSubstr("categories C1 = column 4, C2 = column 3"));
}

TEST_F(BinaryColumns, OfAllSplitsAreInOneOrder) {
  convert("train.bin", std::string(kHeading) + kRows);
  convert("same.bin", "app,site,click,price\nx,abc,1,5\ny,def,0,2\n", {.columns = {"click", "price", "site", "app"}});
  convert("other.bin", std::string(kOther) + kRows);
  convert("unnamed.bin", kRows);
  folder_.write("same.csv", std::string(kHeading) + kRows);
  folder_.write("other.csv", std::string(kOther) + kRows);
  auto const said = HasSubstr("could not be compared");
  EXPECT_THAT(notices_of("train.bin", "same.bin"), Not(Contains(said)));
  EXPECT_THAT(notices_of("train.bin", "same.csv"), Not(Contains(said)));
  EXPECT_THAT(notices_of("same.csv", "train.bin"), Not(Contains(said)));
  EXPECT_THAT(notices_of("unnamed.bin", "unnamed.bin"), Not(Contains(said)));
  for (auto const& [train, test] : {std::pair("train.bin", "unnamed.bin"),
                                    {"same.csv", "unnamed.bin"},
                                    {"unnamed.bin", "train.bin"},
                                    {"unnamed.bin", "same.csv"}}) {
    EXPECT_THAT(notices_of(train, test), Contains(said)) << train << " " << test;
  }
  expect_error([&] { notices_of("train.bin", "other.bin"); },
               {"other.bin has the label, numbers and categories click, price, app, site, and ",
                "train.bin has them in "
                "another order",
                "--columns"});
  expect_error([&] { notices_of("same.csv", "other.bin"); }, {"another order", "--columns"});
  expect_error([&] { notices_of("train.bin", "other.csv"); }, {"other.csv has the columns ", "another order"});
}

TEST_F(BinaryColumns, AreNotThoseOfSettings) {
  convert("train.bin", std::string(kHeading) + kRows);
  folder_.write("test.csv", std::string(kHeading) + kRows);
  Config plain = config("train.bin", "train.bin");
  for (TableSettings const& table :
       {TableSettings{.columns = {"click", "price", "app", "site"}}, TableSettings{.heading = "yes"},
        TableSettings{.separator = "comma"}, TableSettings{.comment = "#"}}) {
    plain.data.table = table;
    plain.data.test = "train.bin";
    expect_error([&] { ClickData data(plain); }, {"data.", "has no effect here (all files are binary", "--"});
    plain.data.test = "";
    expect_error([&] { ClickData data(plain); }, {"has no effect here"});
  }
  plain.data.table = {.heading = "yes"};
  plain.data.test = "test.csv";
  EXPECT_EQ(ClickData(plain).split("test").count, 3U);
}

TEST_F(BinaryColumns, OfFilesToPredictAreInTheOrderOfTraining) {
  auto const train = convert("train.bin", std::string(kHeading) + kRows);
  auto const other = convert("other.bin", std::string(kOther) + kRows), unnamed = convert("unnamed.bin", kRows);
  auto const text = folder_.write("other.csv", std::string(kOther) + kRows);
  auto const run = [&](std::string const& name) {
    Config const of_run = config(name, name);
    auto const data = read_data(of_run);
    run_ranks(std::vector<Group>{Group::alone()},
              [&](Group one) { trainer::train(of_run, *data, one, {.folder = folder_.path() / ("run of " + name)}); });
  };
  auto const predict = [&](std::string const& name, std::filesystem::path const& file) {
    Notices notices;
    std::size_t count = 0;
    predict_run(folder_.path() / ("run of " + name), {}, file, notices,
                [&](std::span<float const> all) { count += all.size(); });
    EXPECT_EQ(count, 3U);
    return notices;
  };
  run("train.bin");
  EXPECT_THAT(predict("train.bin", train), Not(Contains(HasSubstr("compared"))));
  EXPECT_THAT(predict("train.bin", unnamed), Contains(HasSubstr("unnamed.bin has no names of its columns, and the ")));
  expect_error([&] { predict("train.bin", other); }, {"other.bin has ", "the training data has them in another order"});
  expect_error([&] { predict("train.bin", text); }, {"other.csv has ", "another order"});
  run("unnamed.bin");
  EXPECT_THAT(predict("unnamed.bin", train),
              Contains(HasSubstr("the training data has no names of its columns, and ")));
  EXPECT_THAT(predict("unnamed.bin", unnamed), Not(Contains(HasSubstr("compared"))));
}

TEST_F(BinaryColumns, ChangedNamesAreRejected) {
  auto const whole = bytes_of(convert("a.bin", std::string(kHeading) + kRows));
  auto const rejected = [&](std::string bytes, bool correct, char const* words) {
    if (correct) test::correct_checksums(bytes);
    auto const file = folder_.write("changed.bin", bytes);
    expect_error([&] { open_samples(file); }, {"changed.bin", words});
  };
  std::size_t const names = whole.find("click\nprice\nsite\napp");
  ASSERT_NE(names, whole.npos);
  std::string changed = whole;
  changed[names] = 'k';
  rejected(changed, false, "wrong checksum");
  changed[names + 5] = ' ';
  rejected(changed, true, "3 names of 4 columns");
  auto const with_size = [&](std::uint32_t size) {
    changed = whole;
    std::memcpy(changed.data() + offsetof(FileHeader, names_bytes), &size, sizeof size);
    return changed;
  };
  rejected(with_size(0), true, "has version 2");
  rejected(with_size(1 << 20), true, "has no room for 1048576 bytes of names");
  rejected(with_size(~0U), true, "has version 2");
}

}  // namespace
}  // namespace gpups::trainer::binary_columns_test
