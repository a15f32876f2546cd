// SPDX-License-Identifier: Apache-2.0
// Cases that end in every way there is, for the tests of tools/run_cases.py.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

TEST(Ways, Passes) {
  std::puts("what a case that passes prints");
  std::printf("without the end of a line");
}
TEST(Ways, Fails) {
  std::puts("what a case that fails prints");
  EXPECT_EQ(1 + 1, 3);
}
TEST(Ways, IsSkipped) { GTEST_SKIP() << "there is no moon"; }
TEST(Ways, IsKilled) { raise(SIGKILL); }
TEST(Ways, EndsItsProcess) { _exit(0); }
TEST(Ways, Hangs) {
  if (fork() == 0) {  // a process that stays for some time, and holds what the output goes to
    setpgid(0, 0);
    alarm(20);
  }
  while (true) pause();
}
TEST(Ways, DISABLED_IsNotRun) { FAIL(); }

class Numbers : public testing::TestWithParam<int> {};
TEST_P(Numbers, AreSmall) { EXPECT_LT(GetParam(), 3); }
INSTANTIATE_TEST_SUITE_P(All, Numbers, testing::Values(1, 2, 3));

// What happens when all cases have run, such as the search for leaks.
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
