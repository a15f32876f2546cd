// SPDX-License-Identifier: Apache-2.0
// What each format of the wire does to a million numbers, as rows and as buckets of a long vector: how far their mean
// is off, in standard deviations of it; the largest error, in what the format states; bytes, beside what it states.
// Prints a line of JSON for each format, layout and rounding.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "kernels/wire/buckets.hpp"
#include "kernels/wire/quantize_buckets.hpp"
#include "kernels/wire/quantize_rows.hpp"
#include "kernels/wire/unpack_rows.hpp"
#include "tests/wire_oracle.hpp"

namespace gpups::bench {
namespace {

using kernels::Format;
using kernels::Rounding;

constexpr std::size_t kColumns = 512, kRows = 2000, kNumbers = kRows * kColumns;
constexpr std::size_t kBucket = 208;  // the last one has 16 numbers
constexpr std::uint8_t kUntouched = 0xA5;
constexpr char const* kNames[] = {"float", "float16", "bfloat16", "e4m3", "e5m2", "int8", "int4", "int2"};

struct Case {
  Format format;
  Rounding rounding;
  bool buckets;
  float value;  // of all draws; 0: each another one
};

std::size_t columns(Case const& c) { return c.buckets ? kBucket : kColumns; }

std::size_t bytes_stated(Case const& c) {
  return c.buckets ? kernels::bucket_bytes(c.format, kNumbers, kBucket)
                   : kernels::wire_bytes(c.format, kRows, kColumns);
}

// The first number of a row or bucket makes its scale, the others are draws.
std::vector<float> numbers(Case const& c) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<float> any(-1, 1);
  std::vector<float> all(kNumbers);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i % columns(c) == 0 ? 1 : c.value != 0 ? c.value : any(random);
  return all;
}

struct Decoded {
  std::vector<float> values;
  std::size_t bytes;  // that were written
};

Decoded sent(Case const& c, std::vector<float>& all) {
  Stream stream(Device::host(), 2);
  kernels::Draws const draws{.seed = 5, .use = 1};
  std::size_t const stated = bytes_stated(c);
  std::vector<std::uint8_t> wire(stated + 64, kUntouched);
  Decoded decoded{std::vector<float>(all.size()), 0};
  MatrixView<float> const rows(all.data(), kRows, kColumns, kColumns, Device::host());
  MatrixView<float> const out(decoded.values.data(), kRows, kColumns, kColumns, Device::host());
  View<std::uint8_t> const bytes(wire.data(), stated, Device::host());
  View<std::uint8_t const> const read(bytes);
  if (c.buckets) {
    kernels::quantize_buckets(stream, {.values = View<float const>(all),
                                       .format = c.format,
                                       .bucket = kBucket,
                                       .wire = bytes,
                                       .rounding = c.rounding,
                                       .draws = draws});
    kernels::unpack_buckets(stream, {read, c.format, kBucket, View<float>(decoded.values)});
  } else {
    auto const wire_rows = kernels::wire_rows(bytes, c.format, kRows, kColumns);
    kernels::quantize_rows(stream, {.values = rows, .wire = wire_rows, .rounding = c.rounding, .draws = draws});
    kernels::unpack_rows(stream, {kernels::wire_rows(read, c.format, kRows, kColumns), out});
  }
  stream.wait();
  decoded.bytes = wire.size();
  while (decoded.bytes > 0 && wire[decoded.bytes - 1] == kUntouched) --decoded.bytes;
  return decoded;
}

void measure(Case const& c) {
  auto all = numbers(c);
  auto const decoded = sent(c, all);
  double sum = 0, squares = 0, worst = 0, count = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i % columns(c) == 0) continue;
    double const x = static_cast<double>(all[i]), off = static_cast<double>(decoded.values[i]) - x;
    double const stated = test::error_max(c.format, x, 1) * (c.rounding == Rounding::kStochastic ? 2 : 1);
    worst = std::max(worst, stated == 0 ? (off == 0 ? 0 : INFINITY) : std::abs(off) / stated);
    sum += off, squares += off * off, ++count;
  }
  double const mean = sum / count, deviation = std::sqrt((squares / count - mean * mean) / count);
  nlohmann::ordered_json const line{{"format", kNames[static_cast<int>(c.format)]},
                                    {"of", c.buckets ? "buckets" : "rows"},
                                    {"rounding", c.rounding == Rounding::kStochastic ? "stochastic" : "nearest"},
                                    {"value", c.value},
                                    {"draws", count},
                                    {"sigmas", deviation == 0 ? std::abs(mean) : std::abs(mean) / deviation},
                                    {"error", worst},
                                    {"bytes", decoded.bytes},
                                    {"bytes_stated", bytes_stated(c)}};
  fmt::print("{}\n", line.dump());
}

}  // namespace
}  // namespace gpups::bench

int main() {
  using namespace gpups::bench;
  for (auto const format : gpups::kernels::kFormats) {
    for (bool const buckets : {false, true}) {
      measure({format, Rounding::kNearest, buckets, 0});
      if (!gpups::kernels::is_integer(format)) continue;
      for (float const value : {0.3F, -0.77F, 0.004F}) measure({format, Rounding::kStochastic, buckets, value});
    }
  }
}
