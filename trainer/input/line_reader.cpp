// SPDX-License-Identifier: Apache-2.0
#include "trainer/input/line_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kernels/base/check.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/input/odd_characters.hpp"

namespace gpups::trainer {

namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
constexpr std::size_t kLineBytesMax = std::size_t{16} << 20;

}  // namespace

LineReader::LineReader(std::filesystem::path const& path) : path_(path.string()), text_(open_text(path)) {}

bool LineReader::next(std::string_view& line) {
  std::size_t searched = begin_;
  char const* newline = nullptr;
  while (true) {
    if (searched < end_) {
      newline = static_cast<char const*>(std::memchr(buffer_.data() + searched, '\n', end_ - searched));
    }
    if (newline != nullptr || ended_) break;
    searched = end_ - begin_;
    fill();  // moves the unread bytes to the front
  }
  if (newline == nullptr && begin_ == end_) return false;

  std::size_t const stop = newline == nullptr ? end_ : static_cast<std::size_t>(newline - buffer_.data());
  line = {buffer_.data() + begin_, stop - begin_};
  begin_ = newline == nullptr ? end_ : stop + 1;
  if (line.ends_with('\r')) line.remove_suffix(1);
  ++line_number_;
  if (!plain_) require_text(line, path_, line_number_);
  return true;
}

std::string_view LineReader::ahead() {
  if (begin_ == end_ && !ended_) fill();
  return {buffer_.data() + begin_, end_ - begin_};
}

void LineReader::fill() {
  std::size_t const left = end_ - begin_;
  GPUPS_REQUIRE(left <= kLineBytesMax,
                "{}:{}: the line is longer than 16 MiB (the file is probably not text): check the file", path_,
                line_number_ + 1);
  if (left > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, left);
  buffer_.resize(left + kBlockBytes);
  begin_ = 0;
  std::size_t const got = text_->read(buffer_.data() + left, kBlockBytes);
  end_ = left + got;
  ended_ = got < kBlockBytes;
  // One check of a block is faster than one of each line.
  plain_ = is_plain_text({buffer_.data(), end_}) && !has_lone_cr({buffer_.data(), end_});
}

std::string LineReader::position() const { return fmt::format("{}:{}", path_, line_number_); }

std::string_view trim_blanks(std::string_view text) {
  std::size_t const begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

void split_at_blanks(std::string_view line, std::vector<std::string_view>& fields) {
  fields.clear();
  for (std::size_t begin = line.find_first_not_of(kBlanks); begin != std::string_view::npos;
       begin = line.find_first_not_of(kBlanks, begin)) {
    std::size_t const end = std::min(line.find_first_of(kBlanks, begin), line.size());
    fields.push_back(line.substr(begin, end - begin));
    begin = end;
  }
}

namespace {

constexpr std::size_t kFirstLines = 3;

}  // namespace

void BadLines::add(std::string_view position, std::string_view why) {
  ++bad;
  if (first.size() < kFirstLines) first.push_back(fmt::format("{} {}", position, why));
}

void BadLines::append(BadLines const& later) {
  bad += later.bad;
  lines += later.lines;
  for (std::string const& line : later.first) {
    if (first.size() < kFirstLines) first.push_back(line);
  }
}

void BadLines::report(std::filesystem::path const& path, double share_max, std::string_view line_is,
                      std::string_view setting, std::vector<std::string>& notices) const {
  if (bad == 0) return;
  std::string const what = fmt::format("{} of {} in {}: {}{}", with_count(bad, "bad line"), lines, path.string(),
                                       fmt::join(first, ", "), bad > first.size() ? ", ..." : "");
  GPUPS_REQUIRE(static_cast<double>(bad) <= share_max * static_cast<double>(lines),
                "{} (a line is {}): correct the lines{}", what, line_is,
                setting.empty() ? "" : fmt::format(", or allow a share of bad lines with {}", setting));
  notices.push_back("skipped " + what);
}

}  // namespace gpups::trainer
