// SPDX-License-Identifier: Apache-2.0
#include "tools/standard_streams.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "kernels/base/check.hpp"
#include "trainer/base/progress_reporter.hpp"

namespace gpups::tools {

void open_standard_streams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // open() returns the lowest free number, which is this one.
    if (::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream) std::_Exit(1);
  }
}

void print_result(std::string const& text) {
  errno = 0;
  bool const written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written) return;
  throw std::runtime_error(fmt::format(
      "the result cannot be written to standard output ({}): free space on the disk, or redirect the output",
      std::strerror(errno)));
}

std::string error_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return "gpu_train: error: " + text;
}

void print_error(std::string const& text) { trainer::print_line(stderr, error_line(text)); }

ResultFile::ResultFile(std::filesystem::path path) : path_(std::move(path)), beside_(path_.string() + ".new") {
  if (path_.empty()) return;
  std::error_code unknown;
  GPUPS_REQUIRE(!std::filesystem::exists(std::filesystem::symlink_status(path_, unknown)),
                "{} exists (it would be replaced): remove it, or choose another path with --out", path_.string());
  out_.open(beside_, std::ios::binary);
  require_good();
}

ResultFile::~ResultFile() {
  if (!out_.is_open()) return;
  out_.close();
  std::error_code ignored;
  std::filesystem::remove(beside_, ignored);
}

void ResultFile::require_good() {
  GPUPS_REQUIRE(out_.good(), "{} cannot be written ({}): free space on the disk, or choose another path with --out",
                beside_.string(), std::strerror(errno));
}

void ResultFile::write(std::string const& text) {
  if (path_.empty()) return print_result(text);
  out_ << text;
  require_good();
}

void ResultFile::finish() {
  if (path_.empty()) return;
  out_.close();
  std::error_code error;
  if (out_.good()) std::filesystem::rename(beside_, path_, error);
  if (out_.good() && !error) return;
  std::string const why = error ? error.message() : std::strerror(errno);
  std::filesystem::remove(beside_, error);
  throw Error(fmt::format("{} cannot be written ({}): free space on the disk, or choose another path with --out",
                          path_.string(), why));
}

}  // namespace gpups::tools
