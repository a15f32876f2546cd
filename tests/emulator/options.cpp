// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/options.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace gpups::emulator {
namespace {

std::uint64_t number(std::string const& text) {
  std::size_t used = 0;
  std::uint64_t const value = std::stoull(text, &used);
  if (used != text.size()) throw std::invalid_argument(text);
  return value;
}

void set(Options& options, std::string const& name, std::uint64_t value) {
  if (name == "lazy") {
    options.lazy = value != 0;
  } else if (name == "seed") {
    options.seed = value;
  } else if (name == "resident") {
    options.resident = static_cast<int>(value);
  } else if (name == "counts") {
    options.counts = value != 0;
  } else if (name == "nccl_polls") {
    options.nccl_polls = static_cast<int>(value);
  } else if (name == "devices") {
    options.devices = static_cast<int>(value);
  } else if (name == "multiprocessors") {
    options.multiprocessors = static_cast<int>(value);
  } else if (name == "memory_mib") {
    options.memory_mib = value;
  } else if (name == "lists_unknown") {
    options.lists_unknown = value != 0;
  } else if (name == "leaks") {
    options.leaks = value != 0;
  } else {
    throw std::invalid_argument(name);
  }
}

Options parse(std::string const& text) {
  Options options;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t const end = std::min(text.find(',', begin), text.size());
    std::string const option = text.substr(begin, end - begin);
    std::size_t const equals = option.find('=');
    if (equals == std::string::npos) throw std::invalid_argument(option);
    set(options, option.substr(0, equals), number(option.substr(equals + 1)));
    begin = end + 1;
  }
  if (options.resident < 1 || options.devices < 1 || options.multiprocessors < 1) {
    throw std::invalid_argument("a number below 1");
  }
  return options;
}

Options read_environment() {
  char const* const text = std::getenv("GPUPS_EMULATOR");
  try {
    return parse(text == nullptr ? "" : text);
  } catch (std::exception const& error) {
    std::fprintf(stderr,
                 "emulator: GPUPS_EMULATOR is '%s', of which '%s' cannot be used: give NAME=NUMBER,... with the names "
                 "of tests/emulator/options.hpp\n",
                 text, error.what());
    std::exit(2);
  }
}

}  // namespace

Options& options() {
  static Options given = read_environment();
  return given;
}

}  // namespace gpups::emulator
