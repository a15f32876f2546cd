// SPDX-License-Identifier: Apache-2.0
// The facts that the doctor collects about a run, and its report.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/expect_error.hpp"
#include "tests/trainer/run/synthetic_graph.hpp"
#include "trainer/doctor/report.hpp"
#include "trainer/doctor/run_probe.hpp"

namespace gpups::trainer::doctor_report_test {
namespace {

TEST(DoctorRun, ProbeLeavesNoFiles) {
  test::TemporaryFolder const folder;
  test::write_synthetic_graph(folder);
  auto const config = folder.write("run.toml", "[model]\ndim = 8\n[run]\ndevice = \"host\"\nfolder = \"out\"\n");
  {
    RunProbe const probe = probe_run(config, {}, 0, 0);
    EXPECT_TRUE(probe.facts.errors.empty()) << probe.facts.errors[0];
    EXPECT_EQ(probe.facts.device, "host");
    EXPECT_EQ(probe.facts.table_bytes, (120U + 4U) * (8 + 4 * (8 + 8)));  // key, row and state of adagrad
    EXPECT_EQ(probe.facts.folder, (folder.path() / "out").string());
    EXPECT_GT(probe.facts.folder_free_bytes, 0U);
    EXPECT_NE(probe.facts.data.find("120 entities"), std::string::npos) << probe.facts.data;
    EXPECT_EQ(probe_run(config, {}, 1, 1).facts.data_digest, probe.facts.data_digest);  // only rank 0 checks the folder
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "out"));
}

TEST(DoctorRun, ProbeReportsAllErrors) {
  test::TemporaryFolder const folder;
  folder.write("in_the_way", "a file");
  auto const config = folder.write("run.toml", "[run]\ndevice = \"cuda:99\"\nfolder = \"in_the_way\"\n");
  auto const errors = probe_run(config, {}, 0, 0).facts.errors;
  ASSERT_EQ(errors.size(), 3U);
  EXPECT_NE(errors[0].find("cuda:99"), std::string::npos) << errors[0];
  EXPECT_NE(errors[1].find("train.txt"), std::string::npos) << errors[1];
  EXPECT_NE(errors[2].find("in_the_way"), std::string::npos) << errors[2];
  EXPECT_EQ(probe_run(folder.path() / "none.toml", {}, 0, 0).facts.errors.size(), 1U);
}

TEST(DoctorReport, LinesHaveLevelRankAndText) {
  EXPECT_EQ(line_of(ok("all is well")), "ok: all is well");
  EXPECT_EQ(line_of(note("left out 2 lines")), "note: left out 2 lines");
  EXPECT_EQ(line_of(warning("two\nlines"), "ranks 0-3"), "warning: ranks 0-3: two lines");
  EXPECT_EQ(line_of(problem("a (b): c"), "rank 1"), "problem: rank 1: a (b): c");
}

TEST(DoctorReport, VerdictIsThatOfTheWorstFinding) {
  using Level = Finding::Level;
  EXPECT_EQ(worst_of({ok("a"), problem("b"), warning("c")}), Level::kProblem);
  EXPECT_EQ(worst_of({ok("a"), warning("c"), note("b")}), Level::kWarning);
  EXPECT_EQ(worst_of({note("b"), ok("a")}), Level::kNote);
  EXPECT_EQ(worst_of({}), Level::kOk);
  EXPECT_EQ(worst_of({ok("a")}, Level::kProblem), Level::kProblem);
  for (Level const level : {Level::kOk, Level::kNote, Level::kWarning, Level::kProblem}) {
    EXPECT_EQ(verdict(level).level, level);
  }
}

TEST(DoctorReport, MergesEqualFindingsOfRanks) {
  auto const shared = merged({{ok("a"), ok("b"), ok("b")}, {ok("b"), warning("b")}, {ok("b"), ok("c")}});
  ASSERT_EQ(shared.size(), 4U);
  EXPECT_EQ(shared[0].ranks, (std::vector<int>{0}));
  EXPECT_EQ(shared[1].finding, ok("b"));
  EXPECT_EQ(shared[1].ranks, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(shared[2].finding, warning("b"));
  EXPECT_EQ(shared[3].ranks, (std::vector<int>{2}));
}

TEST(DoctorReport, RoundTripKeepsFindings) {
  Findings const findings{ok("a"), warning("\"b\"\n"), problem("c")};
  EXPECT_EQ(deserialize(serialize(findings)), findings);
  EXPECT_EQ(deserialize(serialize({})), Findings{});
  EXPECT_NO_THROW(serialize({ok("no \xff UTF-8")}));
  test::expect_error([] { deserialize("nonsense"); }, {"cannot be read"});
}

}  // namespace
}  // namespace gpups::trainer::doctor_report_test
