// SPDX-License-Identifier: Apache-2.0
// Cases with every possible outcome, for the tests of tools/run_cases.py.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

TEST(Outcomes, Passes) {
  std::puts("what a case that passes prints");
  std::printf("without the end of a line");
}
TEST(Outcomes, Fails) {
  std::puts("what a case that fails prints");
  EXPECT_EQ(1 + 1, 3);
}
TEST(Outcomes, IsSkipped) { GTEST_SKIP() << "there is no moon"; }
TEST(Outcomes, IsKilled) { raise(SIGKILL); }
TEST(Outcomes, EndsItsProcess) { _exit(0); }
TEST(Outcomes, Hangs) {
  if (fork() == 0) {  // a process that lives for some time and keeps the output open
    setpgid(0, 0);
    alarm(20);
  }
  while (true) pause();
}
TEST(Outcomes, DISABLED_IsNotRun) { FAIL(); }

class Numbers : public testing::TestWithParam<int> {};
TEST_P(Numbers, AreSmall) { EXPECT_LT(GetParam(), 3); }
INSTANTIATE_TEST_SUITE_P(All, Numbers, testing::Values(1, 2, 3));

// Ends the process after all cases have run, as a leak checker does.
class Afterwards : public testing::Environment {
  void TearDown() override {
    if (char const* const status = std::getenv("STATUS_AFTERWARDS"); status != nullptr) {
      std::puts("something leaks");
      std::fflush(stdout);
      _exit(std::atoi(status));
    }
  }
};
testing::Environment* const afterwards = testing::AddGlobalTestEnvironment(new Afterwards);

}  // namespace
