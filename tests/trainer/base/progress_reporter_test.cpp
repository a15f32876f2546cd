// SPDX-License-Identifier: Apache-2.0
// Texts of progress, and the number of lines in a log.
#include "trainer/base/progress_reporter.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "trainer/base/stop_signals.hpp"

namespace gpups::trainer::progress_reporter_test {
namespace {

TEST(ProgressReporter, NumbersAreShort) {
  EXPECT_EQ(short_count(7), "7");
  EXPECT_EQ(short_count(999), "999");
  EXPECT_EQ(short_count(1234), "1.2k");
  EXPECT_EQ(short_count(999999), "1.0M");
  EXPECT_EQ(short_time(0), "0:00");
  EXPECT_EQ(short_time(65.4), "1:05");
  EXPECT_EQ(short_time(3723), "1:02:03");
  EXPECT_EQ(short_time(-3), "0:00");
  EXPECT_EQ(short_bytes(1023), "1023 B");
  EXPECT_EQ(short_bytes(1536), "1.5 KiB");
  EXPECT_EQ(short_bytes(std::uint64_t{5} << 30), "5.0 GiB");
}

TEST(ProgressReporter, LineShowsStepEpochSpeedAndLoss) {
  ProgressState at{.step = 50, .steps = 100, .epoch = 2.5, .speed = 1.2e6, .loss = {}, .seconds_left = 65};
  EXPECT_EQ(progress_line(at), "step 50 of 100 (50 %), epoch 2.5, 1.2M samples/s, 1:05 left");
  at.loss = 0.12345;
  EXPECT_EQ(progress_line(at), "step 50 of 100 (50 %), epoch 2.5, 1.2M samples/s, loss 0.1235, 1:05 left");
  EXPECT_EQ(progress_bar(at), "[============>           ] 50 %  epoch 2.5  1.2M samples/s  loss 0.1235  1:05 left");
  at.speed_unit = "words";
  EXPECT_EQ(progress_line(at), "step 50 of 100 (50 %), epoch 2.5, 1.2M words/s, loss 0.1235, 1:05 left");
  EXPECT_EQ(progress_bar(at), "[============>           ] 50 %  epoch 2.5  1.2M words/s  loss 0.1235  1:05 left");
  at.step = 100;
  EXPECT_EQ(progress_bar(at).substr(0, 32), "[========================] 100 %");
}

TEST(ProgressReporter, CountsUseThePlural) {
  EXPECT_EQ(with_count(1, "triple"), "1 triple");
  EXPECT_EQ(with_count(0, "triple"), "0 triples");
  EXPECT_EQ(with_count(2, "entity", "entities"), "2 entities");
  EXPECT_EQ(with_count(1, "entity", "entities"), "1 entity");
  EXPECT_EQ(with_count(2, "query"), "2 queries");
  EXPECT_EQ(with_count(2, "key"), "2 keys");
}

TEST(ProgressReporter, WriteErrorsDoNotThrow) {
  std::FILE* const full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  ProgressReporter progress(full, false);
  for (int i = 0; i <= 2; ++i) EXPECT_NO_THROW(progress.update({.step = i, .steps = 2}, i * 20));
  EXPECT_NO_THROW(progress.print("done"));
  std::fclose(full);
}

class Log {
 public:
  Log() : file_(std::tmpfile()) {}
  ~Log() { std::fclose(file_); }
  std::FILE* file() { return file_; }
  std::string text() {
    std::string all(4096, '\0');
    std::rewind(file_);
    all.resize(std::fread(all.data(), 1, all.size(), file_));
    return all;
  }

 private:
  std::FILE* file_;
};

TEST(ProgressReporter, LogGetsOneLineEveryTenSeconds) {
  Log log;
  ProgressReporter progress(log.file(), false);
  for (int i = 0; i <= 250; ++i) progress.update({.step = i, .steps = 250}, i * 0.1);  // 25 seconds
  progress.print("done");
  std::string const text = log.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_NE(text.find("step 100 of 250"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("done\n"));
}

TEST(ProgressReporter, OtherRanksAreSilent) {
  Log log;
  ProgressReporter progress(log.file(), true);
  progress.update({.step = 1, .steps = 2}, 0);
  progress.print("done");
  EXPECT_EQ(log.text(), "");
}

TEST(StopSignals, AreRecordedDuringObjectLifetime) {
  for (int signal : {SIGTERM, SIGUSR1, SIGINT, SIGHUP}) {
    StopSignals const signals;
    EXPECT_FALSE(StopSignals::received());
    std::raise(signal);
    EXPECT_TRUE(StopSignals::received());
  }
  EXPECT_FALSE(StopSignals::received());
  struct sigaction now {};
  sigaction(SIGTERM, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
}

TEST(StopSignals, IgnoreHangUpUnderNohup) {
  std::signal(SIGHUP, SIG_IGN);
  {
    StopSignals const signals;
    std::raise(SIGHUP);
    EXPECT_FALSE(StopSignals::received());
  }
  std::signal(SIGHUP, SIG_DFL);
}

}  // namespace
}  // namespace gpups::trainer::progress_reporter_test
