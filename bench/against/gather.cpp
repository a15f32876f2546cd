// SPDX-License-Identifier: Apache-2.0
// Random rows of 256 bytes out of 4 million, beside a copy of as many bytes.
#include "kernels/gather.hpp"

#include <memory>

#include "bench/against/copy_side.hpp"
#include "bench/against/races.hpp"
#include "tests/inputs.hpp"

namespace gpups::bench {
namespace {

constexpr std::size_t kRows = std::size_t{4} << 20, kDim = 64;

struct State {
  kernels::RowStorage<float> rows;
  Array<std::uint32_t> ids;
  Matrix<float> out;
};

}  // namespace

Race gather_race(Stream& stream) {
  auto const state = std::make_shared<State>();
  state->rows = kernels::RowStorage<float>(stream.device(), kDim, kernels::NewRows::kZero);
  state->rows.reserve(stream, kRows);
  test::Random random(1);
  state->ids = to_device(stream, test::distinct_ids(random, kRows, kRows));
  state->out = Matrix<float>(stream.device(), kRows, kDim);
  double const bytes = static_cast<double>(kRows) * (2 * kDim * sizeof(float) + sizeof(std::uint32_t));
  return {"bytes",
          {"gather", bytes,
           [state, &stream] {
             kernels::gather(stream, {state->rows.const_ref(), state->ids, state->out});
             stream.wait();
           }},
          copy_side(stream)};
}

}  // namespace gpups::bench
