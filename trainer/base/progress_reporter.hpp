// SPDX-License-Identifier: Apache-2.0
// Reports the progress of a run: as a bar on a terminal, as a line from time to time elsewhere.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace gpups::trainer {

// The progress of a run at one time.
struct ProgressState {
  std::int64_t step = 0, steps = 0;  // completed steps, and all steps of the run
  double epoch = 0;
  double speed = 0;                         // in units per second
  std::string_view speed_unit = "samples";  // the plural
  std::optional<double> loss{};             // mean loss of the last report
  double seconds_left = 0;
};

// Returns a text such as "[=====>    ] 50 %  epoch 2.5  1.2M samples/s  loss 0.1234  1:05 left".
std::string progress_bar(ProgressState const& at);
// Returns a text such as "step 50 of 100 (50 %), epoch 2.5, 1.2M samples/s, loss 0.1234, 1:05 left".
std::string progress_line(ProgressState const& at);
std::string short_count(double count);         // "7", "1.2k", "3.4M"
std::string short_time(double seconds);        // "0:07", "1:02:03"
std::string short_bytes(std::uint64_t bytes);  // "3.4 MiB"
// Returns "1 triple", "2 triples" and so on. many: the plural, if it is not `one` with an s,
// or with "ies" for y.
std::string with_count(std::uint64_t count, std::string_view one, std::string_view many = "");
// Writes a line to `out` and flushes it. Errors are ignored.
void print_line(std::FILE* out, std::string const& text);

// Writes the progress and the messages of one rank.
class ProgressReporter {
 public:
  // silent: writes nothing; for all ranks except rank 0. If `out` is not a terminal, update() writes at most one line
  // in 10 seconds.
  ProgressReporter(std::FILE* out, bool silent);
  ~ProgressReporter();

  // Writes the progress if the last update is old enough. now: seconds of a monotonic clock.
  void update(ProgressState const& at, double now);
  // Writes a line of text.
  void print(std::string const& text);

 private:
  void clear_bar();

  std::FILE* out_;
  bool silent_, terminal_;
  bool bar_shown_ = false;
  std::optional<double> last_;  // time of the last update that was written
};

}  // namespace gpups::trainer
