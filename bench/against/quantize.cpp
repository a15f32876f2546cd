// SPDX-License-Identifier: Apache-2.0
// Compares the quantization of 2 million rows of 64 floats to int8 with residuals, with a copy of as many bytes.
#include <memory>

#include "bench/against/copy_side.hpp"
#include "bench/against/races.hpp"
#include "kernels/codec/quantize_rows.hpp"
#include "kernels/runtime/arena.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::bench {
namespace {

constexpr std::size_t kRows = std::size_t{2} << 20, kDim = 64;

struct State {
  Matrix<float> values, residual;
  Array<std::uint8_t> wire;
};

}  // namespace

Race quantize_int8_race(Stream& stream) {
  auto const state = std::make_shared<State>();
  test::Random random(1);
  // The same 1024 rows are repeated, since the values do not change the time.
  auto const some = test::floats(random, 1024, kDim);
  state->values = Matrix<float>(stream.device(), kRows, kDim);
  state->residual = Matrix<float>(stream.device(), kRows, kDim);
  for (std::size_t first = 0; first < kRows; first += 1024) {
    copy<float>(stream, state->values.view().slice(first, 1024).flat(), View<float const>(some));
    memory::fill_bytes(stream, state->residual.view().row(first), 0, some.size() * sizeof(float));
  }
  state->wire = Array<std::uint8_t>(stream.device(), kernels::encoded_bytes(kernels::Format::kInt8, kRows, kDim));
  double const bytes = static_cast<double>(kRows * kDim) * 12 + static_cast<double>(state->wire.bytes());
  return {"bytes",
          {"quantize_int8", bytes,
           [state, &stream] {
             kernels::quantize_rows(
                 stream, {.values = state->values,
                          .residual = state->residual,
                          .encoded = kernels::encoded_rows(state->wire.view(), kernels::Format::kInt8, kRows, kDim)});
             stream.wait();
           }},
          copy_side(stream)};
}

}  // namespace gpups::bench
