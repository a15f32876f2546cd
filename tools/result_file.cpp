// SPDX-License-Identifier: Apache-2.0
#include "tools/result_file.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include "kernels/base/check.hpp"
#include "tools/standard_streams.hpp"

namespace gpups::tools {

ResultFile::ResultFile(std::filesystem::path path) : path_(std::move(path)), beside_(path_.string() + ".new") {
  if (path_.empty()) return;
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
