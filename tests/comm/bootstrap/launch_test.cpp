// SPDX-License-Identifier: Apache-2.0
// Detecting the launcher of a process from its environment.
#include "comm/bootstrap/launch.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <optional>
#include <string>

#include "tests/support/environment.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gpups::test::launch_test {
namespace {

using comm::LaunchEnvironment;
using Variables = std::map<std::string, std::string>;

constexpr char const* kKnown[] = {
    "RANK",          "WORLD_SIZE",          "LOCAL_RANK",   "MASTER_ADDR",          "MASTER_PORT",
    "GPUPS_PORT",    "GPUPS_TOKEN",         "PMIX_RANK",    "PMIX_NAMESPACE",       "OMPI_COMM_WORLD_SIZE",
    "SLURM_PROCID",  "GPUPS_TOKEN_FILE",    "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_LOCAL_RANK",
    "SLURM_LOCALID", "TORCHELASTIC_RUN_ID", "OMPI_MCA_ess"};

// Detects the launcher with only these of the known variables.
LaunchEnvironment launch(Variables const& variables) {
  Environment::Variables all;
  for (char const* name : kKnown) all[name] = std::nullopt;
  for (auto const& [name, value] : variables) all[name] = value;
  Environment const set(all);
  return comm::detect_launch();
}

Variables environment(Variables const& other = {}) {
  Variables made = other;
  made.merge(Variables{{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "host0"}, {"MASTER_PORT", "4100"}});
  return made;
}

void expect_rejected(Variables const& variables, std::initializer_list<char const*> words) {
  expect_error([&] { launch(variables); }, words);
}

TEST(LaunchEnvironment, ProcessWithoutLauncherIsAlone) {
  EXPECT_EQ(launch({}).kind, LaunchEnvironment::Kind::kAlone);
  EXPECT_EQ(launch({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).kind, LaunchEnvironment::Kind::kAlone);
  EXPECT_EQ(launch({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).kind, LaunchEnvironment::Kind::kAlone)
      << "in a batch script";
  EXPECT_EQ(launch({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}).kind, LaunchEnvironment::Kind::kAlone);
}

TEST(LaunchEnvironment, ReadsRankFromVariables) {
  LaunchEnvironment const found = launch(environment({{"LOCAL_RANK", "1"}, {"GPUPS_TOKEN", "secret"}}));
  EXPECT_EQ(found.kind, LaunchEnvironment::Kind::kEnvironment);
  EXPECT_EQ(found.rank, Rank{2});
  EXPECT_EQ(found.size, 4);
  EXPECT_EQ(found.local_rank, 1);
  EXPECT_EQ(found.hosts, std::vector<std::string>{"host0"});
  EXPECT_EQ(found.port, 4100);
  EXPECT_EQ(found.token, "secret");
  EXPECT_EQ(launch(environment({{"GPUPS_PORT", "4200"}})).port, 4200);
  EXPECT_EQ(launch(environment()).token, "");
  EXPECT_FALSE(launch(environment()).local_rank.has_value());
}

TEST(LaunchEnvironment, ReadsRankFromPmix) {
  LaunchEnvironment const found = launch({{"PMIX_RANK", "1"},
                                          {"PMIX_NAMESPACE", "job"},
                                          {"OMPI_COMM_WORLD_SIZE", "3"},
                                          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}});
  EXPECT_EQ(found.kind, LaunchEnvironment::Kind::kPmix);
  EXPECT_EQ(found.rank, Rank{1});
  EXPECT_EQ(found.size, 3);
  EXPECT_EQ(found.local_rank, 1);
  EXPECT_EQ(launch({{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "job"}}).size, 0);
  EXPECT_EQ(launch({{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "job"}, {"RANK", "7"}}).kind,
            LaunchEnvironment::Kind::kPmix);
  EXPECT_EQ(launch({{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "job"}, {"OMPI_COMM_WORLD_SIZE", "1"}}).kind,
            LaunchEnvironment::Kind::kAlone);
}

TEST(LaunchEnvironment, MpiThatNoLauncherHasStartedIsNoJob) {
  Variables const mpi{{"PMIX_NAMESPACE", "1"}, {"PMIX_RANK", "0"}, {"OMPI_MCA_ess", "singleton"}};
  EXPECT_EQ(launch(mpi).kind, LaunchEnvironment::Kind::kAlone);
  LaunchEnvironment const found = launch(environment(mpi));
  EXPECT_EQ(found.kind, LaunchEnvironment::Kind::kEnvironment);
  EXPECT_EQ(found.rank, Rank{2});
}

TEST(LaunchEnvironment, TorchrunOverridesPmix) {
  LaunchEnvironment const found =
      launch(environment({{"PMIX_RANK", "0"}, {"PMIX_NAMESPACE", "job"}, {"TORCHELASTIC_RUN_ID", "run"}}));
  EXPECT_EQ(found.kind, LaunchEnvironment::Kind::kEnvironment);
  EXPECT_EQ(found.rank, Rank{2});
}

TEST(LaunchEnvironment, RankMustMatchPmix) {
  Variables const pmix{{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "job"}, {"OMPI_COMM_WORLD_SIZE", "2"}};
  auto const with = [&](Variables other) {
    other.insert(pmix.begin(), pmix.end());
    return other;
  };
  EXPECT_EQ(launch(with({{"RANK", "1"}, {"WORLD_SIZE", "2"}})).kind, LaunchEnvironment::Kind::kPmix);
  EXPECT_EQ(launch(with({{"WORLD_SIZE", "7"}})).kind, LaunchEnvironment::Kind::kPmix);
  expect_rejected(with({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), {"RANK is 0", "PMIx", "rank 1 of 2", "unset RANK"});
  expect_rejected(with({{"RANK", "1"}, {"WORLD_SIZE", "4"}}), {"WORLD_SIZE is 4", "rank 1 of 2"});
  expect_rejected(with({{"RANK", "0"}, {"WORLD_SIZE", "1"}}), {"WORLD_SIZE is 1", "rank 1 of 2"});
  LaunchEnvironment const found =
      launch({{"PMIX_RANK", "1"}, {"PMIX_NAMESPACE", "job"}, {"RANK", "1"}, {"WORLD_SIZE", "4"}});
  EXPECT_EQ(found.kind, LaunchEnvironment::Kind::kPmix) << "if PMIx gives no size, only the rank must match";
}

TEST(LaunchEnvironment, RejectsContradictions) {
  expect_rejected({{"RANK", "0"}}, {"RANK is", "WORLD_SIZE"});
  expect_rejected({{"WORLD_SIZE", "2"}}, {"WORLD_SIZE is 2", "RANK"});
  expect_rejected(environment({{"RANK", "4"}}), {"RANK is 4 and WORLD_SIZE is 4"});
  expect_rejected(environment({{"RANK", "-1"}}), {"RANK is \"-1\""});
  expect_rejected(environment({{"RANK", "1x"}}), {"RANK is \"1x\""});
  expect_rejected(environment({{"WORLD_SIZE", "0"}}), {"WORLD_SIZE is \"0\""});
  expect_rejected(environment({{"MASTER_PORT", "65536"}}), {"MASTER_PORT is \"65536\""});
  expect_rejected(environment({{"GPUPS_PORT", "http"}}), {"GPUPS_PORT is \"http\""});
  expect_rejected(environment({{"MASTER_ADDR", ""}}), {"MASTER_ADDR"});
  expect_rejected(environment({{"MASTER_PORT", ""}}), {"GPUPS_PORT", "MASTER_PORT"});
  expect_rejected({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_SIZE", "3"}}, {"WORLD_SIZE is 1", "mpirun"});
}

TEST(LaunchEnvironment, RejectsRanksWithoutBootstrapAddress) {
  expect_rejected({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}}, {"srun has started 4", "--mpi=pmix"});
  expect_rejected({{"OMPI_COMM_WORLD_SIZE", "2"}}, {"mpirun has started 2"});
}

TEST(LaunchEnvironment, ReadsTokenFromFile) {
  TemporaryFolder const folder;
  std::string const file = (folder.path() / "token").string();
  std::ofstream(file) << "of the file\n";
  EXPECT_EQ(launch(environment({{"GPUPS_TOKEN_FILE", file}})).token, "of the file");
  EXPECT_EQ(launch(environment({{"GPUPS_TOKEN_FILE", file}, {"GPUPS_TOKEN", "of the file"}})).token, "of the file");
  expect_rejected(environment({{"GPUPS_TOKEN_FILE", file}, {"GPUPS_TOKEN", "another"}}), {"different tokens"});
  std::ofstream(file) << "\n";
  expect_rejected(environment({{"GPUPS_TOKEN_FILE", file}}), {"is empty", "GPUPS_TOKEN_FILE"});
  expect_rejected(environment({{"GPUPS_TOKEN_FILE", file + ".absent"}}), {".absent", "cannot be read"});
  expect_rejected(environment({{"GPUPS_TOKEN_FILE", folder.path().string()}}), {"cannot be read"});
}

}  // namespace
}  // namespace gpups::test::launch_test
