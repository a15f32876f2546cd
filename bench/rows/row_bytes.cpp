// SPDX-License-Identifier: Apache-2.0
// Measures the bytes of a push of rows, relative to the allowed bytes: 4 for each number, or 2 as float16, plus 9 for a
// new key, or 2 for a key that was sent before. Prints a line of JSON for each number of ranks and width of rows.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tests/support/gradient_bytes.hpp"

namespace gpups::bench {
namespace {

constexpr std::size_t kRows = 10'000;

void measure(int ranks, std::size_t dim) {
  TableOptions const lossless{.dim = dim};
  TableOptions const half{.dim = dim, .gradient_compression = {.codec = RowCodec::kHalf}};
  auto const bytes = [&](TableOptions const& options, int pushes) {
    return test::gradient_bytes_per_key(ranks, pushes, kRows, options, /*dense_keys=*/false).bytes;
  };
  // A rank sends the rows that it does not own: (ranks - 1) / ranks of them on average.
  double const sent = static_cast<double>(kRows) * (ranks - 1), columns = static_cast<double>(dim);
  double const first = bytes(lossless, 1), first_half = bytes(half, 1);
  nlohmann::ordered_json const line{{"ranks", ranks},
                                    {"dim", dim},
                                    {"new", first / (sent * (4 * columns + 9))},
                                    {"named", (bytes(lossless, 2) - first) / (sent * (4 * columns + 2))},
                                    {"new_half", first_half / (sent * (2 * columns + 9))},
                                    {"named_half", (bytes(half, 2) - first_half) / (sent * (2 * columns + 2))}};
  fmt::print("{}\n", line.dump());
}

}  // namespace
}  // namespace gpups::bench

int main() {
  for (int const ranks : {2, 4}) {
    for (std::size_t const dim : {1, 10, 64}) gpups::bench::measure(ranks, dim);
  }
}
