// SPDX-License-Identifier: Apache-2.0
// Quantizes a million numbers in each wire format, as rows, as buckets of a long vector, as rows of exact sums, and as
// elements of a sparse stream. Measures the error of their mean, in standard deviations of the mean; the largest error,
// relative to the bound that the format states; and the written and the stated bytes. Prints a line of JSON for each
// format, layout and rounding.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "kernels/codec/quantize_buckets.hpp"
#include "kernels/codec/quantize_rows.hpp"
#include "kernels/codec/quantize_sums.hpp"
#include "kernels/rows/row_storage.hpp"
#include "kernels/sparse/encode_stream.hpp"
#include "kernels/sparse/sum_streams.hpp"
#include "tests/support/wire_oracle.hpp"

namespace gpups::bench {
namespace {

using kernels::Format;
using kernels::Rounding;

enum class Layout { kRows, kBuckets, kSums, kStream };
constexpr Layout kLayouts[] = {Layout::kRows, Layout::kBuckets, Layout::kSums, Layout::kStream};

constexpr std::size_t kColumns = 510, kRows = 2001, kNumbers = kRows * kColumns;  // codes of 2 to 8 bits are padded
constexpr std::size_t kBucket = 208;                                              // the last one has 62 numbers
constexpr std::size_t kPlaces = 16;  // positions of a stream for each element: gaps take one byte
constexpr std::size_t kOfBlock = kernels::kStreamBlock / kPlaces;  // the last one has 606
constexpr int kGrid = -30;
constexpr std::uint8_t kUntouched = 0xA5;
constexpr double kFar = 1e9;  // stands for infinity, which JSON does not have
constexpr char const* kNames[] = {"float", "float16", "bfloat16", "e4m3", "e5m2", "int8", "int4", "int2"};
constexpr char const* kLayoutNames[] = {"rows", "buckets", "sums", "stream"};

struct Case {
  Format format;
  Rounding rounding;
  Layout layout;
  float value;  // of all draws; 0: random values
};

// Returns how many numbers share a scale.
std::size_t columns(Case const& c) {
  return c.layout == Layout::kBuckets ? kBucket : c.layout == Layout::kStream ? kOfBlock : kColumns;
}

// Returns the sum of header, a word for each block, one more if their number is odd, and values and gaps of the blocks.
std::size_t stream_bytes_stated(Format format) {
  std::size_t const blocks = (kNumbers + kOfBlock - 1) / kOfBlock, rest = kNumbers % kOfBlock;
  std::size_t const head = 48 + (blocks + blocks % 2) * 4;
  if (format != Format::kInt8) return head + kNumbers * (kernels::bits_of(format) / 8 + 1);
  return head + blocks * 4 + (blocks - 1) * kOfBlock + (rest + 3) / 4 * 4 + kNumbers;
}

std::size_t bytes_stated(Case const& c) {
  if (c.layout == Layout::kStream) return stream_bytes_stated(c.format);
  return c.layout == Layout::kBuckets ? kernels::bucket_bytes(c.format, kNumbers, kBucket)
                                      : kernels::encoded_bytes(c.format, kRows, kColumns);
}

// Returns the stated error bound, for numbers that share a scale and whose largest is 1.
double error_stated(Case const& c, double x) {
  double const times = c.rounding == Rounding::kStochastic ? 2 : 1;
  if (c.layout != Layout::kSums) return times * test::error_max(c.format, x, 1);
  if (c.format == Format::kFloat) return 0x1p-24 * std::abs(x);  // sums have more bits than floats
  double const units = kernels::has_scale(c.format) ? .5 : 0;    // scales are whole units
  return times * (test::error_max(c.format, x, 1) * (1 + 0x1p-12) + std::ldexp(units, kGrid));
}

// The first of the numbers that share a scale is 1 and determines it; the others are draws.
std::vector<float> numbers(Case const& c) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<float> any(-1, 1);
  std::vector<float> all(kNumbers);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i % columns(c) == 0 ? 1 : c.value != 0 ? c.value : any(random);
  return all;
}

struct Coded {
  std::vector<double> given, decoded;
  std::size_t bytes;  // written bytes
};

// Memory of the stated size, followed by more memory that shows writes beyond it.
class Wire {
 public:
  explicit Wire(Case const& c) : stated_(bytes_stated(c)), all_(stated_ + 64, kUntouched) {}
  View<std::uint8_t> view() { return {all_.data(), stated_, Device::host()}; }
  std::size_t written() const {
    std::size_t bytes = all_.size();
    while (bytes > 0 && all_[bytes - 1] == kUntouched) --bytes;
    return bytes;
  }

 private:
  std::size_t stated_;
  std::vector<std::uint8_t> all_;
};

constexpr kernels::RoundingKey kDraws{.seed = 5, .use = 1};

template <class T>
MatrixView<T> as_rows(std::vector<std::remove_const_t<T>>& numbers) {
  return {numbers.data(), kRows, kColumns, kColumns, Device::host()};
}

Coded code_floats(Stream& stream, Case const& c) {
  auto all = numbers(c);
  std::vector<float> decoded(kNumbers);
  Wire wire(c);
  View<std::uint8_t const> const read(wire.view());
  if (c.layout == Layout::kBuckets) {
    kernels::quantize_buckets(stream, {.values = View<float const>(all),
                                       .format = c.format,
                                       .bucket = kBucket,
                                       .encoded = wire.view(),
                                       .rounding = c.rounding,
                                       .rounding_key = kDraws});
    kernels::dequantize_buckets(stream, {read, c.format, kBucket, View<float>(decoded)});
  } else {
    kernels::quantize_rows(stream, {.values = as_rows<float const>(all),
                                    .encoded = kernels::encoded_rows(wire.view(), c.format, kRows, kColumns),
                                    .rounding = c.rounding,
                                    .rounding_key = kDraws});
    kernels::dequantize_rows(stream, {kernels::encoded_rows(read, c.format, kRows, kColumns), as_rows<float>(decoded)});
  }
  stream.wait();
  return {{all.begin(), all.end()}, {decoded.begin(), decoded.end()}, wire.written()};
}

// Decoded values are NaN if decoded units and residual do not add up exactly to the sum.
Coded code_sums(Stream& stream, Case const& c) {
  std::vector<std::int64_t> sums, residual(kNumbers, 0), decoded(kNumbers, 0);
  std::mt19937_64 random(9);
  for (float const x : numbers(c)) {
    auto const more = static_cast<std::int64_t>(x == 1 ? 0 : random() % 4096);  // floats have fewer bits
    sums.push_back(std::llround(std::ldexp(static_cast<double>(x), -kGrid)) + more);
  }
  std::vector<std::uint32_t> bad_row{kernels::kNoRow};
  Wire wire(c);
  kernels::quantize_sums(stream, {.sums = as_rows<std::int64_t const>(sums),
                                  .residual = as_rows<std::int64_t>(residual),
                                  .encoded = kernels::encoded_rows(wire.view(), c.format, kRows, kColumns),
                                  .grid_log2 = kGrid,
                                  .bad_row = View<std::uint32_t>(bad_row),
                                  .rounding = c.rounding,
                                  .rounding_key = kDraws});
  kernels::add_dequantized_sums(
      stream, {.encoded = kernels::encoded_rows(View<std::uint8_t const>(wire.view()), c.format, kRows, kColumns),
               .slots = {},
               .into = as_rows<std::int64_t>(decoded),
               .grid_log2 = kGrid});
  stream.wait();
  Coded coded{{}, {}, wire.written()};
  for (std::size_t i = 0; i < kNumbers; ++i) {
    coded.given.push_back(std::ldexp(static_cast<double>(sums[i]), kGrid));
    bool const is_consistent = bad_row[0] == kernels::kNoRow && decoded[i] + residual[i] == sums[i];
    coded.decoded.push_back(is_consistent ? std::ldexp(static_cast<double>(decoded[i]), kGrid) : NAN);
  }
  return coded;
}

constexpr kernels::StreamValues values_of(Format format) {
  using kernels::StreamValues;
  return format == Format::kHalf       ? StreamValues::kHalf
         : format == Format::kBFloat16 ? StreamValues::kBFloat16
         : format == Format::kInt8     ? StreamValues::kInt8
                                       : StreamValues::kFloat;
}

bool is_there(Case const& c) {
  if (c.rounding == Rounding::kStochastic) return kernels::is_integer(c.format) && c.layout != Layout::kStream;
  return c.layout != Layout::kStream || c.format == Format::kFloat || values_of(c.format) != values_of(Format::kFloat);
}

Coded code_stream(Stream& stream, Case const& c) {
  auto const all = numbers(c);
  std::vector<std::uint32_t> indices;
  for (std::uint32_t i = 0; i < kNumbers; ++i) indices.push_back(i * kPlaces);
  std::vector<float> whole(kNumbers * kPlaces);
  kernels::EncodeEntries<float> const entries{.indices = View<std::uint32_t const>(indices),
                                              .values = View<float const>(all),
                                              .first = 0,
                                              .size = whole.size(),
                                              .form = {values_of(c.format)}};
  Array<std::uint8_t> const bytes = kernels::encode(stream, entries);
  kernels::StreamView const view{View<std::uint8_t const>(bytes)};
  bool const is_bad = kernels::sum(stream, kernels::SumToDense<float>{{&view, 1}, View<float>(whole)}).has_value();
  Coded coded{{all.begin(), all.end()}, {}, bytes.size()};
  for (std::uint32_t const index : indices) coded.decoded.push_back(is_bad ? NAN : static_cast<double>(whole[index]));
  return coded;
}

Coded code(Case const& c) {
  Stream stream(Device::host(), 2);
  return c.layout == Layout::kSums     ? code_sums(stream, c)
         : c.layout == Layout::kStream ? code_stream(stream, c)
                                       : code_floats(stream, c);
}

void measure(Case const& c) {
  auto const coded = code(c);
  double sum = 0, squares = 0, worst = 0, count = 0;
  for (std::size_t i = 0; i < kNumbers; ++i) {
    if (i % columns(c) == 0) continue;
    double off = coded.decoded[i] - coded.given[i];
    if (!(std::abs(off) < kFar)) off = kFar;
    if (off != 0) worst = std::max(worst, std::min(std::abs(off) / error_stated(c, coded.given[i]), kFar));
    sum += off, squares += off * off, ++count;
  }
  double const mean = sum / count, deviation = std::sqrt((squares / count - mean * mean) / count);
  nlohmann::ordered_json const line{{"format", kNames[static_cast<int>(c.format)]},
                                    {"of", kLayoutNames[static_cast<int>(c.layout)]},
                                    {"rounding", c.rounding == Rounding::kStochastic ? "stochastic" : "nearest"},
                                    {"value", c.value},
                                    {"draws", count},
                                    {"sigmas", deviation == 0 ? std::abs(mean) : std::abs(mean) / deviation},
                                    {"error", worst},
                                    {"bytes", coded.bytes},
                                    {"bytes_stated", bytes_stated(c)}};
  fmt::print("{}\n", line.dump());
}

}  // namespace
}  // namespace gpups::bench

int main() {
  using namespace gpups::bench;
  for (auto const format : gpups::kernels::kFormats) {
    for (Layout const layout : kLayouts) {
      if (Case const c{format, Rounding::kNearest, layout, 0}; is_there(c)) measure(c);
      for (float const value : {0.3F, -0.77F, 0.004F}) {
        if (Case const c{format, Rounding::kStochastic, layout, value}; is_there(c)) measure(c);
      }
    }
  }
}
