// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/nccl/mailbox.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

namespace gpups::emulator {
namespace fs = std::filesystem;

Mailbox::~Mailbox() {
  std::error_code ignored;
  for (auto const& [to, count] : sent_) {
    for (Number number = 0; number < count; ++number) fs::remove(path(me_, to, number), ignored);
  }
}

std::string Mailbox::path(int from, int to, Number number) const {
  return fs::temp_directory_path() /
         (name_ + "." + std::to_string(from) + "-" + std::to_string(to) + "." + std::to_string(number));
}

// The file gets its name when it is complete.
void Mailbox::send(int to, Number number, std::span<std::uint8_t const> data) {
  std::string const file = path(me_, to, number), incomplete = file + ".incomplete";
  std::ofstream out(incomplete, std::ios::binary);
  out.write(reinterpret_cast<char const*>(data.data()), static_cast<std::streamsize>(data.size()));
  out.close();
  if (!out) throw std::system_error(errno, std::generic_category(), "writing " + incomplete);
  fs::rename(incomplete, file);
}

bool Mailbox::is_received(int to, Number number) const { return !fs::exists(path(me_, to, number)); }

std::optional<std::vector<std::uint8_t>> Mailbox::receive(int from, Number number) {
  std::string const file = path(from, me_, number);
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::nullopt;
  std::vector<std::uint8_t> data(fs::file_size(file));
  in.read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(data.size()));
  if (!in) throw std::system_error(errno, std::generic_category(), "reading " + file);
  fs::remove(file);
  return data;
}

}  // namespace gpups::emulator
