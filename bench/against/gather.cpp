// SPDX-License-Identifier: Apache-2.0
// Compares a gather of random rows of 256 bytes, out of 4 million, with a copy of as many bytes.
#include "kernels/rows/copy_rows.hpp"

#include <memory>

#include "bench/against/copy_side.hpp"
#include "bench/against/races.hpp"
#include "kernels/base/nontemporal.hpp"
#include "kernels/runtime/arena.hpp"
#include "kernels/runtime/space.hpp"
#include "tests/support/inputs.hpp"

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

// A minimal loop over rows in one piece of memory: the upper limit of a gather on this machine.
Race gather_bare_race(Stream& stream) {
  constexpr std::size_t kAhead = 32, kBlock = 4096;
  test::Random random(1);
  auto const rows = std::make_shared<Matrix<float>>(stream.device(), kRows, kDim);
  auto const out = std::make_shared<Matrix<float>>(stream.device(), kRows, kDim);
  memory::fill_bytes(stream, rows->view().data(), 0, rows->view().flat().bytes());
  auto const ids = std::make_shared<std::vector<std::uint32_t>>(test::distinct_ids(random, kRows, kRows));
  ids->resize(kRows + kAhead);
  double const bytes = static_cast<double>(kRows) * (2 * kDim * sizeof(float) + sizeof(std::uint32_t));
  auto const run = [=, &stream] {
    kernels::host_exec(stream).arena->blocks(kRows / kBlock, [&](std::size_t block) {
      std::uint32_t const* const id = ids->data();
      float const* const from = rows->view().data();
      float* const to = out->view().data();
      for (std::size_t i = block * kBlock; i < (block + 1) * kBlock; ++i) {
        kernels::prefetch_row<kernels::PrefetchTarget::kToL2>(from + kDim * id[i + kAhead], kDim * sizeof(float));
        for (std::size_t j = 0; j < kDim; j += kernels::kLineFloats) {
          kernels::store_line_nontemporal(to + kDim * i + j, from + kDim * id[i] + j);
        }
      }
      kernels::nontemporal_fence();
    });
  };
  return {"bytes", {"a bare loop", bytes, run}, copy_side(stream)};
}

}  // namespace gpups::bench
