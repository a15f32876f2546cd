// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/progress_reporter.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace gpups::trainer {
namespace {

constexpr std::size_t kBarWidth = 24;
constexpr double kBarEvery_s = 0.2, kLineEvery_s = 10;

double share_done(ProgressState const& at) {
  return at.steps > 0 ? static_cast<double>(at.step) / static_cast<double>(at.steps) : 1;
}

void write(std::FILE* out, std::string const& text) {
  std::fwrite(text.data(), 1, text.size(), out);
  std::fflush(out);
  std::clearerr(out);
}

std::string loss_text(ProgressState const& at, char const* before) {
  return at.loss ? fmt::format("{}loss {:.4f}", before, *at.loss) : "";
}

}  // namespace

std::string short_count(double count) {
  if (count < 1000) return fmt::format("{:.0f}", count);
  if (count < 999950) return fmt::format("{:.1f}k", count / 1e3);
  return fmt::format("{:.1f}M", count / 1e6);
}

std::string short_time(double seconds) {
  auto const s = static_cast<std::int64_t>(std::lround(std::clamp(seconds, 0.0, 1e9)));
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::string short_bytes(std::uint64_t bytes) {
  char const* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1023.95 && unit < 4; ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

std::string with_count(std::uint64_t count, std::string_view one, std::string_view many) {
  if (count == 1) return fmt::format("1 {}", one);
  if (!many.empty()) return fmt::format("{} {}", count, many);
  bool const after_vowel =
      one.size() > 1 && std::string_view("aeiou").find(one[one.size() - 2]) != std::string_view::npos;
  return one.ends_with('y') && !after_vowel ? fmt::format("{} {}ies", count, one.substr(0, one.size() - 1))
                                            : fmt::format("{} {}s", count, one);
}

void print_line(std::FILE* out, std::string const& text) { write(out, text + "\n"); }

std::string progress_bar(ProgressState const& at) {
  auto const full = static_cast<std::size_t>(share_done(at) * kBarWidth);
  std::string bar(full, '=');
  if (full < kBarWidth) bar += '>';
  bar.resize(kBarWidth, ' ');
  return fmt::format("[{}] {:.0f} %  epoch {:.1f}  {} {}/s{}  {} left", bar, share_done(at) * 100, at.epoch,
                     short_count(at.speed), at.speed_unit, loss_text(at, "  "), short_time(at.seconds_left));
}

std::string progress_line(ProgressState const& at) {
  return fmt::format("step {} of {} ({:.0f} %), epoch {:.1f}, {} {}/s{}, {} left", at.step, at.steps,
                     share_done(at) * 100, at.epoch, short_count(at.speed), at.speed_unit, loss_text(at, ", "),
                     short_time(at.seconds_left));
}

ProgressReporter::ProgressReporter(std::FILE* out, bool silent)
    : out_(out), silent_(silent), terminal_(isatty(fileno(out)) == 1) {}

ProgressReporter::~ProgressReporter() { clear_bar(); }

void ProgressReporter::update(ProgressState const& at, double now) {
  if (silent_ || (last_ && now - *last_ < (terminal_ ? kBarEvery_s : kLineEvery_s))) return;
  last_ = now;
  if (terminal_) {
    write(out_, fmt::format("\r{}\x1B[K", progress_bar(at)));
    bar_shown_ = true;
  } else {
    print_line(out_, progress_line(at));
  }
}

void ProgressReporter::print(std::string const& text) {
  if (silent_) return;
  clear_bar();
  print_line(out_, text);
}

void ProgressReporter::clear_bar() {
  if (bar_shown_) write(out_, "\r\x1B[K");
  bar_shown_ = false;
}

}  // namespace gpups::trainer
