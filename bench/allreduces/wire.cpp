// SPDX-License-Identifier: Apache-2.0
#include "bench/allreduces/wire.hpp"

#include <fstream>
#include <sstream>
#include <string>

namespace gpups::bench {

// Format of /proc/net/dev: "name: received bytes, 7 more numbers, sent bytes, ...".
std::uint64_t wire_bytes_sent() {
  std::ifstream file("/proc/self/net/dev");
  std::uint64_t sum = 0;
  for (std::string line; std::getline(file, line);) {
    auto const colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::istringstream numbers(line.substr(colon + 1));
    std::uint64_t number = 0;
    for (int i = 0; i < 9; ++i) numbers >> number;
    if (numbers) sum += number;
  }
  return sum;
}

}  // namespace gpups::bench
