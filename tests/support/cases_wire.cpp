// SPDX-License-Identifier: Apache-2.0
// Cases of kernels that quantize rows for the wire and dequantize them.
#include <memory>

#include "kernels/codec/quantize_rows.hpp"
#include "kernels/codec/quantize_sums.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/wire_oracle.hpp"

namespace gpups::test {
namespace {

using kernels::Format;
using kernels::Rounding;
using Ids = std::vector<std::uint32_t>;

// Memory for n rows on the wire.
struct Wire {
  Wire() = default;
  Wire(Stream& stream, Format f, CaseSize s)
      : format(f), size(s), bytes(to_device(stream, std::vector<std::uint8_t>(encoded_bytes(f, s.n, s.dim), 0xA5))) {}
  kernels::EncodedRows rows() const { return kernels::encoded_rows(bytes.view(), format, size.n, size.dim); }
  kernels::EncodedRowsIn rows_in() const {
    return kernels::encoded_rows(View<std::uint8_t const>(bytes.view()), format, size.n, size.dim);
  }
  std::vector<double> decoded(Stream& on) const {
    return test::decoded(to_host(on, rows().codes), to_host(on, rows().scales), format, size.n, size.dim);
  }

  Format format;
  CaseSize size;
  Array<std::uint8_t> bytes;
};

double largest(double const* row, std::size_t dim) {
  double most = 0;
  for (std::size_t j = 0; j < dim; ++j) most = std::max(most, std::abs(row[j]));
  return most;
}

// Returns rows of different magnitudes; some are zero.
std::vector<float> rows_of_all_sizes(Random& random, CaseSize size) {
  auto values = floats(random, size.n, size.dim);
  std::size_t const stride = row_stride(size.dim);
  for (std::size_t i = 0; i < size.n; ++i) {
    int const log2 = static_cast<int>(below(random, 24)) - 12;
    for (std::size_t j = 0; j < stride; ++j) {
      float& x = values[i * stride + j];
      x = log2 == 11 ? 0 : std::ldexp(x, log2);
    }
  }
  return values;
}

template <Format F, Rounding R>
Problem quantize_rows(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    std::vector<float> values, before;
    Matrix<float> values_there, residual;
    Wire wire;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  s->values = rows_of_all_sizes(random, size);
  s->before = floats(random, size.n, size.dim);
  for (float& x : s->before) x *= 0x1p-6F;
  s->values_there = matrix(stream, s->values, size.n, size.dim);
  s->residual = matrix(stream, s->before, size.n, size.dim);
  s->wire = Wire(stream, F, size);

  Problem p;
  p.entries = size.n;
  p.bytes = 12 * size.n * size.dim + s->wire.bytes.size();
  p.run = [s, seed](Stream& on) {
    kernels::quantize_rows(on, {s->values_there, s->residual, s->wire.rows(), R, {.seed = seed, .use = 7}});
  };
  p.wrong = [s, size](Stream& on) -> std::string {
    auto const decoded = s->wire.decoded(on);
    auto const residual = to_host(on, s->residual.view().flat());
    for (std::size_t i = 0; i < size.n; ++i) {
      std::vector<double> row(size.dim);
      for (std::size_t j = 0; j < size.dim; ++j) {
        std::size_t const at = i * row_stride(size.dim) + j;
        row[j] = s->values[at] + s->before[at];
      }
      double const most = largest(row.data(), size.dim);
      for (std::size_t j = 0; j < size.dim; ++j) {
        double const left = row[j] - decoded[i * size.dim + j];
        double const allowed = error_max(F, row[j], most) * (R == Rounding::kStochastic ? 2 : 1);
        if (!(std::abs(left) <= allowed)) return fmt::format("row {} column {}: off by {}", i, j, left);
        float const got = residual[i * row_stride(size.dim) + j];
        if (got != static_cast<float>(left)) return fmt::format("row {} column {}: residual {} {}", i, j, got, left);
      }
    }
    return {};
  };
  p.bits = [s](Stream& on) {
    return bytes_of(to_host(on, s->wire.bytes.view())) + bytes_of(to_host(on, s->residual.view().flat()));
  };
  return p;
}

constexpr int kGrid = -30;

template <Format F, Rounding R>
Problem quantize_sums(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    std::vector<std::int64_t> sums, before;
    Matrix<std::int64_t> sums_there, residual;
    Wire wire;
    Array<std::uint32_t> bad_row;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  std::size_t const stride = row_stride(size.dim);
  s->sums.resize(size.n * stride);
  s->before.resize(size.n * stride);
  for (std::size_t i = 0; i < size.n; ++i) {
    int const bits = static_cast<int>(below(random, 60));
    for (std::size_t j = 0; j < size.dim; ++j) {
      s->sums[i * stride + j] = static_cast<std::int64_t>(random()) >> (63 - bits);
      s->before[i * stride + j] = static_cast<std::int64_t>(random()) >> (63 - bits / 2);
    }
  }
  s->sums_there = matrix(stream, s->sums, size.n, size.dim);
  s->residual = matrix(stream, s->before, size.n, size.dim);
  s->wire = Wire(stream, F, size);
  s->bad_row = to_device(stream, Ids{kernels::kNoRow});

  Problem p;
  p.entries = size.n;
  p.bytes = 24 * size.n * size.dim + s->wire.bytes.size();
  p.run = [s, seed](Stream& on) {
    kernels::quantize_sums(
        on, {s->sums_there, s->residual, s->wire.rows(), kGrid, s->bad_row, R, {.seed = seed, .use = 7}});
  };
  p.wrong = [s, size, stride](Stream& on) -> std::string {
    auto const decoded = s->wire.decoded(on);
    auto const residual = to_host(on, s->residual.view().flat());
    if (to_host(on, s->bad_row.view())[0] != kernels::kNoRow) return "a row was reported as bad";
    double const unit = has_scale(F) ? 1 : std::ldexp(1.0, kGrid);
    for (std::size_t i = 0; i < size.n; ++i) {
      std::vector<double> row(size.dim);
      for (std::size_t j = 0; j < size.dim; ++j) {
        row[j] = static_cast<double>(s->sums[i * stride + j] + s->before[i * stride + j]) * unit;
      }
      double const most = largest(row.data(), size.dim);
      for (std::size_t j = 0; j < size.dim; ++j) {
        std::size_t const at = i * stride + j;
        double const units = decoded[i * size.dim + j] / unit;
        if (units != std::floor(units)) return fmt::format("row {} column {}: {} units", i, j, units);
        if (s->sums[at] + s->before[at] != static_cast<std::int64_t>(units) + residual[at]) {
          return fmt::format("row {} column {}: {} units and {} left are not {} + {}", i, j, units, residual[at],
                             s->sums[at], s->before[at]);
        }
        // A scale is at least 1 unit.
        double const allowed = (error_max(F == Format::kFloat ? Format::kBFloat16 : F, row[j], most) * (1 + 0x1p-12) +
                                (has_scale(F) ? .5 : 0)) *
                               (R == Rounding::kStochastic ? 2 : 1);
        if (!(std::abs(static_cast<double>(residual[at])) * unit <= allowed)) {
          return fmt::format("row {} column {}: {} left of {}", i, j, residual[at], row[j]);
        }
      }
    }
    return {};
  };
  p.bits = [s](Stream& on) {
    return bytes_of(to_host(on, s->wire.bytes.view())) + bytes_of(to_host(on, s->residual.view().flat()));
  };
  return p;
}

// Rows of random codes, all of them finite, and rows to add them to.
struct Received {
  CaseSize size;
  Wire wire;
  Ids slots;
  Array<std::uint32_t> slots_there;
  std::vector<float> values;
  Matrix<float> values_there;
  std::vector<std::int64_t> sums;
  Matrix<std::int64_t> sums_there;
};

std::shared_ptr<Received> received(Stream& stream, Format format, CaseSize size, std::uint64_t seed) {
  Random random(seed);
  auto s = std::make_shared<Received>();
  s->size = size;
  s->wire = Wire(stream, format, size);
  std::vector<std::uint8_t> bytes(s->wire.bytes.size());
  std::size_t const width = kernels::bits_of(format) / 8;
  // A float is finite if the highest bit of its exponent is 0.
  for (std::size_t b = 0; b < bytes.size(); ++b) {
    bool const has_exponent = !is_integer(format) && width > 0 && b % width == width - 1;
    bytes[b] = static_cast<std::uint8_t>(random() & (has_exponent ? 0xBF : 0xFF));
  }
  for (std::size_t i = 0; i < size.n && has_scale(format); ++i) {
    auto const scale = static_cast<float>(1 + below(random, 65535));
    std::memcpy(bytes.data() + size.n * code_bytes(format, size.dim) + 4 * i, &scale, 4);
  }
  copy<std::uint8_t>(stream, s->wire.bytes, View<std::uint8_t const>(bytes));
  std::size_t const rows = 2 * size.n + 1;
  s->slots = distinct_ids(random, size.n, rows);
  s->slots_there = to_device(stream, s->slots);
  s->values = floats(random, rows, size.dim);
  s->values_there = matrix(stream, s->values, rows, size.dim);
  for (float const x : s->values) s->sums.push_back(static_cast<std::int64_t>(x * 0x1p40F));
  s->sums_there = matrix(stream, s->sums, rows, size.dim);
  return s;
}

template <Format F, bool kAdd>
Problem dequantize(Stream& stream, CaseSize size, std::uint64_t seed) {
  auto const s = received(stream, F, size, seed);
  Problem p;
  p.entries = size.n;
  p.bytes = s->wire.bytes.size() + (kAdd ? 8 : 4) * size.n * size.dim;
  p.run = [s](Stream& on) {
    if (kAdd) {
      kernels::add_dequantized(on, {s->wire.rows_in(), s->slots_there, s->values_there});
    } else {
      kernels::dequantize_rows(on, {s->wire.rows_in(), s->values_there});
    }
  };
  p.wrong = [s](Stream& on) {
    auto const decoded = s->wire.decoded(on);
    auto want = s->values;
    for (std::size_t i = 0; i < s->size.n; ++i) {
      for (std::size_t j = 0; j < s->size.dim; ++j) {
        float& to = want[(kAdd ? s->slots[i] : i) * row_stride(s->size.dim) + j];
        auto const value = static_cast<float>(decoded[i * s->size.dim + j]);
        to = kAdd ? to + value : value;
      }
    }
    return differ("values", to_host(on, s->values_there.view().flat()), want);
  };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->values_there.view().flat())); };
  return p;
}

template <Format F>
Problem add_units(Stream& stream, CaseSize size, std::uint64_t seed) {
  auto const s = received(stream, F, size, seed);
  Problem p;
  p.entries = size.n;
  p.bytes = s->wire.bytes.size() + 16 * size.n * size.dim;
  p.run = [s](Stream& on) {
    kernels::add_dequantized_sums(on, {s->wire.rows_in(), s->slots_there, s->sums_there, kGrid});
  };
  p.wrong = [s](Stream& on) {
    auto const decoded = s->wire.decoded(on);
    auto want = s->sums;
    for (std::size_t i = 0; i < s->size.n; ++i) {
      for (std::size_t j = 0; j < s->size.dim; ++j) {
        double const units = decoded[i * s->size.dim + j] * (has_scale(F) ? 1 : std::ldexp(1.0, -kGrid));
        want[s->slots[i] * row_stride(s->size.dim) + j] += static_cast<std::int64_t>(units);
      }
    }
    return differ("sums", to_host(on, s->sums_there.view().flat()), want);
  };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->sums_there.view().flat())); };
  return p;
}

constexpr KernelCase kWireCases[] = {
    {"quantize_float", quantize_rows<Format::kFloat, Rounding::kNearest>},
    {"quantize_half", quantize_rows<Format::kHalf, Rounding::kNearest>},
    {"quantize_bfloat", quantize_rows<Format::kBFloat16, Rounding::kNearest>},
    {"quantize_e4m3", quantize_rows<Format::kE4M3, Rounding::kNearest>},
    {"quantize_e5m2", quantize_rows<Format::kE5M2, Rounding::kNearest>},
    {"quantize_int8", quantize_rows<Format::kInt8, Rounding::kNearest>},
    {"quantize_int4", quantize_rows<Format::kInt4, Rounding::kNearest>},
    {"quantize_int2", quantize_rows<Format::kInt2, Rounding::kNearest>},
    {"quantize_int8_random", quantize_rows<Format::kInt8, Rounding::kStochastic>},
    {"quantize_int4_random", quantize_rows<Format::kInt4, Rounding::kStochastic>},
    {"quantize_int2_random", quantize_rows<Format::kInt2, Rounding::kStochastic>},
    {"quantize_sums_float", quantize_sums<Format::kFloat, Rounding::kNearest>},
    {"quantize_sums_half", quantize_sums<Format::kHalf, Rounding::kNearest>},
    {"quantize_sums_bfloat", quantize_sums<Format::kBFloat16, Rounding::kNearest>},
    {"quantize_sums_e4m3", quantize_sums<Format::kE4M3, Rounding::kNearest>},
    {"quantize_sums_e5m2", quantize_sums<Format::kE5M2, Rounding::kNearest>},
    {"quantize_sums_int8", quantize_sums<Format::kInt8, Rounding::kNearest>},
    {"quantize_sums_int8_random", quantize_sums<Format::kInt8, Rounding::kStochastic>},
    {"quantize_sums_int4_random", quantize_sums<Format::kInt4, Rounding::kStochastic>},
    {"quantize_sums_int2_random", quantize_sums<Format::kInt2, Rounding::kStochastic>},
    {"unpack_float", dequantize<Format::kFloat, false>},
    {"unpack_half", dequantize<Format::kHalf, false>},
    {"unpack_bfloat", dequantize<Format::kBFloat16, false>},
    {"unpack_e4m3", dequantize<Format::kE4M3, false>},
    {"unpack_e5m2", dequantize<Format::kE5M2, false>},
    {"unpack_int8", dequantize<Format::kInt8, false>},
    {"unpack_int4", dequantize<Format::kInt4, false>},
    {"unpack_int2", dequantize<Format::kInt2, false>},
    {"add_unpacked_half", dequantize<Format::kHalf, true>},
    {"add_unpacked_int8", dequantize<Format::kInt8, true>},
    {"add_unpacked_int4", dequantize<Format::kInt4, true>},
    {"add_units_bfloat", add_units<Format::kBFloat16>},
    {"add_units_e4m3", add_units<Format::kE4M3>},
    {"add_units_int8", add_units<Format::kInt8>},
    {"add_units_int2", add_units<Format::kInt2>},
};

}  // namespace

std::span<KernelCase const> wire_cases() { return kWireCases; }

}  // namespace gpups::test
