// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <system_error>

namespace gpups::emulator {
namespace {

constexpr std::uint64_t kManyDevices = 64, kManyBlocks = 4096, kManyMib = std::uint64_t{1} << 24;

// Returns a whole number between two others.
std::uint64_t number(std::string const& option, std::uint64_t least, std::uint64_t most) {
  std::string const text = option.substr(option.find('=') + 1);
  std::uint64_t value = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most) {
    throw std::invalid_argument(option + "' (its number must be " + std::to_string(least) + " to " +
                                std::to_string(most) + ")");
  }
  return value;
}

void set(Options& options, std::string const& option) {
  std::string const name = option.substr(0, option.find('='));
  auto const count = [&](std::uint64_t least, std::uint64_t most) {
    return static_cast<int>(number(option, least, most));
  };
  if (name == "lazy") {
    options.lazy = count(0, 1) == 1;
  } else if (name == "seed") {
    options.seed = number(option, 0, ~std::uint64_t{0});
  } else if (name == "resident") {
    options.resident = count(1, kManyBlocks);
  } else if (name == "counts") {
    options.counts = count(0, 1) == 1;
  } else if (name == "nccl_polls") {
    options.nccl_polls = count(0, 1'000'000);
  } else if (name == "devices") {
    options.devices = count(0, kManyDevices);
  } else if (name == "peers") {
    options.peers = count(0, 1) == 1;
  } else if (name == "multiprocessors") {
    options.multiprocessors = count(1, kManyBlocks);
  } else if (name == "memory_mib") {
    options.memory_mib = number(option, 1, kManyMib);
  } else if (name == "lists_unknown") {
    options.lists_unknown = count(0, 1) == 1;
  } else if (name == "leaks") {
    options.leaks = count(0, 1) == 1;
  } else {
    throw std::invalid_argument(option + "' (there is no such option)");
  }
}

Options parse(std::string const& text) {
  Options options;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t const end = std::min(text.find(',', begin), text.size());
    std::string const option = text.substr(begin, end - begin);
    set(options, option);
    begin = end + 1;
  }
  return options;
}

Options read_environment() {
  char const* const text = std::getenv("GPUPS_EMULATOR");
  try {
    return parse(text == nullptr ? "" : text);
  } catch (std::exception const& error) {
    std::fprintf(
        stderr,
        "emulator: GPUPS_EMULATOR is '%s', of which '%s cannot be used: give NAME=NUMBER,... with names of "
        "devices, peers, lazy, seed, resident, nccl_polls, counts, leaks, memory_mib, multiprocessors, lists_unknown\n",
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
