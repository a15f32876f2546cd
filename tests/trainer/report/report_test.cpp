// SPDX-License-Identifier: Apache-2.0
// The numbers of a report, and pages of real runs.
#include "trainer/report/report.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/run/train_fixture.hpp"
#include "trainer/report/axis.hpp"
#include "trainer/report/intervals.hpp"
#include "trainer/report/svg.hpp"

namespace gpups::trainer::report::report_test {
namespace {

using nlohmann::json;

json line_at(std::int64_t step, std::uint64_t messages, std::uint64_t moves) {
  return {{"step", step},
          {"loss", static_cast<double>(step)},
          {"entries", messages},
          {"moved_rows", moves},
          {"sent", {{"moves", 10 * moves}, {"messages", messages}}}};
}

TEST(ReportIntervals, AreDifferencesOfLines) {
  auto const intervals = intervals_of({line_at(10, 100, 5), line_at(30, 300, 25)}, 80);
  ASSERT_EQ(intervals.size(), 2U);
  EXPECT_EQ(intervals[0].first, 0);
  EXPECT_EQ(intervals[1].first, 10);
  EXPECT_EQ(intervals[1].last, 30);
  EXPECT_DOUBLE_EQ(intervals[0].per_step("moved_rows"), 0.5);
  EXPECT_DOUBLE_EQ(intervals[1].per_step("sent.moves"), 10);
}

TEST(ReportIntervals, BeginAgainWhereARunWasResumed) {
  std::vector<json> const reports{line_at(10, 100, 5), line_at(20, 40, 2)};
  EXPECT_DOUBLE_EQ(intervals_of(reports, 80)[1].per_step("moved_rows"), 0.2);
  EXPECT_DOUBLE_EQ(total_of(reports, nullptr).of("moved_rows"), 7);
  EXPECT_DOUBLE_EQ(total_of(reports, line_at(20, 60, 3)).of("moved_rows"), 8) << "the summary is later";
}

TEST(ReportIntervals, AreJoinedIfThereAreMany) {
  std::vector<json> reports;
  for (std::int64_t i = 1; i <= 7; ++i) {
    reports.push_back(line_at(10 * i, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(i * i)));
  }
  auto const intervals = intervals_of(reports, 3);
  ASSERT_EQ(intervals.size(), 3U);
  EXPECT_EQ(intervals[1].first, 30);
  EXPECT_EQ(intervals[1].last, 60);
  EXPECT_DOUBLE_EQ(intervals[1].counts.of("moved_rows"), 36 - 9);
  EXPECT_DOUBLE_EQ(intervals[1].loss, 50) << "the mean over steps";
  EXPECT_EQ(intervals[2].last, 70);
  EXPECT_EQ(intervals[2].first, 60);
}

TEST(ReportIntervals, HaveNoOutliersOfAFewSteps) {
  auto const intervals = intervals_of({line_at(50, 1, 50), line_at(52, 2, 60), line_at(100, 3, 100)}, 80);
  ASSERT_EQ(intervals.size(), 2U);
  EXPECT_EQ(intervals[0].last, 52);
  EXPECT_DOUBLE_EQ(intervals[0].counts.of("moved_rows"), 60);
}

// 100 keys have another home. 60 of them were fetched, of which 20 moved, so a fetched row takes 8,000 / 40 bytes.
TEST(ReportEstimate, CountsTheRowsThatHomesWouldSend) {
  Counters const counts({{"remote_keys", 60},
                         {"moved_rows", 20},
                         {"remote_home_keys", 100},
                         {"sent", {{"gradients", 5000}, {"refreshes", 2900}, {"late_fetches", 100}, {"moves", 3000}}}});
  auto const estimate = estimate_of(counts);
  ASSERT_TRUE(estimate);
  EXPECT_DOUBLE_EQ(estimate->at_homes(counts), 20000);
  EXPECT_DOUBLE_EQ(HomeEstimate::sent(counts), 11000);
  EXPECT_FALSE(estimate_of(Counters({{"remote_keys", 20}, {"moved_rows", 20}, {"remote_home_keys", 9}})));
}

TEST(ReportText, IsEscaped) {
  EXPECT_EQ(escape("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
  Svg svg(10, 10, "\"<b>\"");
  svg.rect(0, 0, 1, 1, color(0), "<script>");
  EXPECT_EQ(svg.finish().find("<b>"), std::string::npos);
  EXPECT_EQ(svg.finish().find("<script>"), std::string::npos);
}

TEST(ReportAxis, HasRoundTicks) {
  Axis const axis = axis_for(0, 856, 5);
  EXPECT_EQ(axis.ticks(), (std::vector<double>{0, 200, 400, 600, 800, 1000}));
  EXPECT_EQ(axis_for(0.31, 0.36, 5).ticks().size(), 6U);
  EXPECT_EQ(axis_for(0.31, 0.36, 5).text(0.32, {}), "0.32");
  EXPECT_EQ(axis_for(-3, 4, 4).ticks().front(), -4);
  EXPECT_EQ(step_axis(1064, 6).high, 1064);
  EXPECT_EQ(step_axis(1064, 6).ticks().back(), 1000);
  EXPECT_EQ(step_axis(1, 6).ticks(), (std::vector<double>{0, 1}));
  for (double const value : {0.0, 3.0, -2.0}) EXPECT_LT(axis_for(value, value, 5).low, axis_for(value, value, 5).high);
}

TEST(ReportText, NumbersHaveUnits) {
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1234567), "1.23 MB");
  EXPECT_EQ(count_text(1234567), "1,234,567");
  EXPECT_EQ(count_text(-123), "-123");
  EXPECT_EQ(percent_text(1, 8), "12 %");
  EXPECT_EQ(percent_text(1, 80), "1.2 %");
  EXPECT_EQ(percent_text(0, 0), "0 %");
  EXPECT_EQ(axis_for(0, 2.5e6, 5).text(1.5e6, byte_unit(2.5e6)), "1.5");
}

class ReportTest : public TrainTest {
 protected:
  std::filesystem::path run_folder() const { return folder_.path() / "run"; }
  std::string page() const { return page_of(read_run(run_folder())); }
  // Adds text to metrics.jsonl.
  void append(std::string const& text) const { std::ofstream(run_folder() / "metrics.jsonl", std::ios::app) << text; }
  static std::string error_of(std::filesystem::path const& folder) {
    try {
      write_report(folder, {});
    } catch (Error const& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(ReportTest, ReplacesPagesOnly) {
  run("run", {"run.ranks=1"});
  auto const file = run_folder() / "page.html";
  for (int times = 0; times < 2; ++times) EXPECT_EQ(write_report(run_folder(), file), file);
  EXPECT_THROW(write_report(run_folder(), run_folder() / "summary.json"), Error);
  EXPECT_NO_THROW(page()) << "the summary is as it was";
}

TEST_F(ReportTest, ReplacesWhatAFullDiskLeft) {
  run("run", {"run.ranks=1"});
  auto const file = folder_.write("left.html", "");
  write_report(run_folder(), file);
  std::string const whole = page_of_folder(run_folder());
  folder_.write("left.html", whole.substr(0, 40));
  write_report(run_folder(), file);
  EXPECT_EQ(std::filesystem::file_size(file), whole.size());
  folder_.write("left.html", "<!DOCTYPE html>\n<p>mine</p>\n");
  EXPECT_THROW(write_report(run_folder(), file), Error);
  EXPECT_THROW(write_report(run_folder(), "/dev/null"), Error) << "renaming would replace it";
  std::filesystem::create_symlink(run_folder() / "linked.html", folder_.path() / "link.html");
  write_report(run_folder(), folder_.path() / "link.html");
  EXPECT_TRUE(std::filesystem::is_symlink(folder_.path() / "link.html"));
  EXPECT_FALSE(std::filesystem::exists(run_folder() / "linked.html.new"));
}

TEST_F(ReportTest, PagesOfRunsHaveNumbersOrSayWhyNot) {
  run("run", {"run.ranks=4", "placement.policy=adaptive", "run.report_every=2"});
  std::string const moving = page();
  for (char const* words : {"4 ranks", "The run has finished", "moves of rows", "Moved rows per step",
                            "rank 3 to rank 0", "the policy moved it", "at homes (estimate)", "Rows by owner"}) {
    EXPECT_NE(moving.find(words), std::string::npos) << words;
  }
  std::filesystem::remove_all(run_folder());
  run("run", {"run.ranks=2"});
  std::string const still = page();
  for (char const* words : {"No row moves: placement.policy is static.", "so there is nothing to compare",
                            "uses by rank 0", "it is at its home"}) {
    EXPECT_NE(still.find(words), std::string::npos) << words;
  }
  std::filesystem::remove_all(run_folder());
  run("run", {"run.ranks=1"});
  std::string const alone = page();
  EXPECT_NE(alone.find("There is one rank, so nothing is sent."), std::string::npos);
  for (char const* id : {"bytes", "homes", "owners", "pairs", "hot"}) {
    EXPECT_EQ(alone.find(fmt::format("<section id=\"{}\">", id)), std::string::npos) << id;
    EXPECT_NE(still.find(fmt::format("<section id=\"{}\">", id)), std::string::npos) << id;
  }
}

// Returns the bytes within hosts and between hosts that a row of the table of links has, as they are printed.
std::pair<std::string, std::string> links_of(std::string const& page, std::string const& kind) {
  std::string const cell = "</td><td class=\"number\">";
  auto const table = page.find("<table id=\"links\">");
  if (table == std::string::npos) return {};
  auto const row = page.find("<tr><td>" + kind + cell, table);
  if (row == std::string::npos) return {};
  auto const first = page.find(cell, row) + cell.size(), end = page.find(cell, first);
  auto const second = end + cell.size();
  return {page.substr(first, end - first), page.substr(second, page.find(cell, second) - second)};
}

TEST_F(ReportTest, HasTheBytesBetweenHosts) {
  auto const summary = run("run", {"run.ranks=4", "placement.ranks_per_host=2"});
  EXPECT_EQ(summary.at("ranks_per_host"), (json{2, 2}));
  EXPECT_EQ(lines("run", "loss").back().at("ranks_per_host"), (json{2, 2}));
  std::string const text = page();
  EXPECT_NE(text.find("The ranks are on 2 hosts"), std::string::npos);
  std::map<std::string, double> all_within, all_between;
  for (auto const& pair : summary.at("pairs")) {
    bool const same = pair.at("from").get<int>() / 2 == pair.at("to").get<int>() / 2;
    for (auto const& [kind, bytes] : pair.at("bytes").items()) {
      for (auto const& name : {kind, std::string("all kinds")}) {
        (same ? all_within : all_between)[name] += bytes.get<double>();
      }
    }
  }
  double of_kinds = 0;
  for (auto const& [kind, bytes] : summary.at("sent").items()) of_kinds += kind == "messages" ? 0 : bytes.get<double>();
  EXPECT_LE(all_within["all kinds"] + all_between["all kinds"], of_kinds);
  EXPECT_GT(all_within["all kinds"] + all_between["all kinds"], 0.9 * of_kinds);
  for (char const* kind : {"all kinds", "gradients", "refreshes", "intents", "moves", "control"}) {
    EXPECT_GT(all_between[kind], 0) << kind;
    EXPECT_EQ(links_of(text, kind), std::pair(bytes_text(all_within[kind]), bytes_text(all_between[kind]))) << kind;
  }
  std::size_t maps = 0, borders = 0;
  for (auto at = text.find(" between ranks\">"); at != std::string::npos; at = text.find(" between ranks\">", at + 1)) {
    ++maps;
  }
  for (auto at = text.find("class=\"border\""); at != std::string::npos; at = text.find("class=\"border\"", at + 1)) {
    ++borders;
  }
  EXPECT_GT(maps, 4U);
  EXPECT_EQ(borders, 2 * maps) << "a line between rows and one between columns";
}

// Hosts may have different numbers of ranks.
TEST_F(ReportTest, HasBordersOfHostsOnly) {
  EXPECT_EQ(run("run", {"run.ranks=3", "placement.ranks_per_host=2"}).at("ranks_per_host"), (json{2, 1}));
  EXPECT_EQ(read_run(run_folder()).hosts(), (std::vector<std::size_t>{0, 0, 1}));
  auto const text_with = [&](json const& counts) {
    auto summary = json::parse(std::ifstream(run_folder() / "summary.json"));
    summary["ranks_per_host"] = counts;
    folder_.write("run/summary.json", summary.dump());
    return page();
  };
  EXPECT_NE(text_with({1, 2}), text_with({2, 1}));
  EXPECT_THROW(text_with({2, 2}), Error);
  EXPECT_THROW(text_with({1, 1}), Error);
  std::string const one_host = text_with(json::array({3}));
  EXPECT_EQ(one_host.find("between hosts"), std::string::npos);
  EXPECT_EQ(one_host.find("class=\"border\""), std::string::npos);
  std::filesystem::remove_all(run_folder());
  EXPECT_EQ(run("run", {"run.ranks=2"}).at("ranks_per_host"), json::array({2}));
  EXPECT_TRUE(read_run(run_folder()).hosts().empty());
}

TEST_F(ReportTest, ReadsRunsThatHaveNotEnded) {
  run("run", {"run.ranks=2", "placement.policy=adaptive"});
  std::filesystem::remove(run_folder() / "summary.json");
  append("{\"step\": 99, \"los");
  std::string const text = page();
  EXPECT_NE(text.find("it has no summary of its end"), std::string::npos);
  EXPECT_NE(text.find("The rows are in summary.json"), std::string::npos);
}

TEST_F(ReportTest, NamesTheDamagedLine) {
  run("run", {"run.ranks=2", "train.steps=6", "run.report_every=2"});
  auto const reports = lines("run", "loss");
  ASSERT_EQ(reports.size(), 3U);
  auto const damaged = [&](std::string const& second) {
    folder_.write("run/metrics.jsonl", fmt::format("{}\n{}\n{}\n", reports[0].dump(), second, reports[2].dump()));
    return error_of(run_folder());
  };
  EXPECT_EQ(damaged(reports[1].dump()), "");
  json const wrong{{"step", -4}, {"loss", "2"}, {"received", 5}, {"sent", {{"moves", "x"}}}};
  for (auto const& [key, value] : wrong.items()) {
    auto line = reports[1];
    line[key] = value;
    EXPECT_NE(damaged(line.dump()).find("line 2 of " + (run_folder() / "metrics.jsonl").string() + " is damaged ("),
              std::string::npos)
        << key;
    line.erase(key);
    EXPECT_NE(damaged(line.dump()).find("line 2 of "), std::string::npos) << key;
  }
  for (char const* line : {"{\"step\": 4, \"los", "[4]", "{\"step\": 4, \"valid\": 0.5}", ""}) {
    EXPECT_NE(damaged(line).find("line 2 of "), std::string::npos) << line;
  }
  EXPECT_EQ(damaged(reports[1].dump()), "");
  append("{\"step\": 8, \"los\n");
  EXPECT_NE(error_of(run_folder()).find("line 4 of "), std::string::npos) << "the line has its end";
}

TEST_F(ReportTest, LaterLinesReplaceLinesBeforeAResume) {
  run("run", {"run.ranks=2", "train.steps=6", "run.report_every=2"});
  auto again = lines("run", "loss").at(1);
  again["loss"] = 1.5;
  append(again.dump() + "\n");
  auto const record = read_run(run_folder());
  ASSERT_EQ(record.reports.size(), 2U);
  EXPECT_EQ(record.reports.back().at("loss"), 1.5);
}

TEST_F(ReportTest, RejectsFoldersWithoutARun) {
  EXPECT_NE(error_of(folder_.path()).find("config.toml does not exist"), std::string::npos);
  run("run", {"train.steps=2", "run.ranks=2"});
  folder_.write("run/summary.json", "{}");
  EXPECT_NE(error_of(run_folder()).find("is no summary of a run"), std::string::npos);
  std::filesystem::remove(run_folder() / "summary.json");
  auto line = lines("run", "loss").back();
  line["pairs"] = json::array({json{{"from", 0}}});
  append(line.dump() + "\n");
  EXPECT_NE(error_of(run_folder()).find("of a wrong type"), std::string::npos);
  folder_.write("run/metrics.jsonl", "");
  EXPECT_NE(error_of(run_folder()).find("no complete line with a loss"), std::string::npos);
  std::filesystem::remove(run_folder() / "metrics.jsonl");
  EXPECT_NE(error_of(run_folder()).find("cannot be read"), std::string::npos);
}

// Counters in lines and in the summary are sums over ranks, and rows have one owner each.
TEST_F(ReportTest, LinesHaveTheCountersOfTheSummary) {
  auto const summary = run("run", {"run.ranks=3", "placement.policy=adaptive"});
  auto const last = lines("run", "owned_rows").back();
  for (char const* key : {"entries", "distinct_keys", "remote_keys", "remote_home_keys", "moved_rows", "late_keys"}) {
    EXPECT_EQ(last.at(key), summary.at(key)) << key;
  }
  EXPECT_GT(summary.at("remote_home_keys"), summary.at("remote_keys").get<int>() - summary.at("moved_rows").get<int>());
  auto const owned = summary.at("owned_rows").get<std::vector<int>>();
  EXPECT_EQ(owned.size(), 3U);
  EXPECT_EQ(owned[0] + owned[1] + owned[2], 124) << "entities and relations";
  EXPECT_EQ(summary.at("hottest_rows").size(), 20U);
  EXPECT_EQ(summary.at("hottest_rows")[0].at("uses").size(), 3U);
}

// Rows that do not move are counted as well. A step near the end and those after it have at most 16 uses of a rank.
TEST_F(ReportTest, HottestRowsAreThereWithEveryPolicy) {
  auto const hottest = run("run", {"run.ranks=3", "placement.policy=static"}).at("hottest_rows");
  ASSERT_EQ(hottest.size(), 20U);
  int before = 3 * 16;
  for (auto const& row : hottest) {
    EXPECT_EQ(row.at("reason"), "home");
    EXPECT_EQ(row.at("owner"), row.at("home"));
    int all = 0;
    for (int const uses : row.at("uses")) {
      EXPECT_LE(uses, 16);
      all += uses;
    }
    EXPECT_LE(all, std::exchange(before, all));
  }
  EXPECT_GT(before, 0);
}

}  // namespace
}  // namespace gpups::trainer::report::report_test
