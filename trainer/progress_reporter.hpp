// SPDX-License-Identifier: Apache-2.0
// Tells a person how far a run is: a bar on a terminal, a line now and then elsewhere.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace gpups::trainer {

// How far a run is at some time.
struct ProgressState {
  std::int64_t step = 0, steps = 0;  // done, and in all
  double epoch = 0;
  double samples_per_s = 0;
  std::optional<double> loss{};  // mean of late
  double seconds_left = 0;
};

// "[=====>    ] 50 %  epoch 2.5  1.2M samples/s  loss 0.1234  1:05 left"
std::string progress_bar(ProgressState const& at);
// "step 50 of 100 (50 %), epoch 2.5, 1.2M samples/s, loss 0.1234, 1:05 left"
std::string progress_line(ProgressState const& at);
// "7", "1.2k", "3.4M"; "0:07", "1:02:03"; "3.4 MiB".
std::string short_count(double count);
std::string short_time(double seconds);
std::string short_bytes(std::uint64_t bytes);
// "1 triple", "2 triples"; `many` for words whose plural is another.
std::string with_count(std::uint64_t count, std::string_view one, std::string_view many = "");
// Writes a line to `out` and lets it be seen. A line that cannot be written is lost: nothing else fails for it.
void print_line(std::FILE* out, std::string const& text);

class ProgressReporter {
 public:
  // silent: for all ranks but one. Where `out` is no terminal, lines come at most every 10 seconds.
  ProgressReporter(std::FILE* out, bool silent);
  ~ProgressReporter();

  // now: seconds of a clock that only goes forward.
  void update(ProgressState const& at, double now);
  // A line of its own.
  void print(std::string const& text);

 private:
  void clear_bar();

  std::FILE* out_;
  bool silent_, terminal_;
  bool bar_shown_ = false;
  std::optional<double> last_;  // when something was written
};

}  // namespace gpups::trainer
