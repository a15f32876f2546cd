// SPDX-License-Identifier: Apache-2.0
// Compares packing and unpacking of a million rows of 64 sums with a copy of as many bytes.
#include "kernels/codec/pack_sums.hpp"

#include <memory>

#include "bench/against/copy_side.hpp"
#include "bench/against/races.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::bench {
namespace {

constexpr std::size_t kRows = std::size_t{1} << 20, kDim = 64;

struct State {
  Matrix<std::int64_t> sums;
  Array<std::uint32_t> order, bad_row;
  Array<std::uint64_t> starts;
  kernels::PackedBytes bytes;
  kernels::PackedRows rows() const { return {bytes.memory.view().slice(0, bytes.size), kRows, kDim}; }
};

// Sums of 26 to 32 bits, which is usual for gradients.
std::shared_ptr<State> make_state(Stream& stream) {
  auto const state = std::make_shared<State>();
  test::Random random(1);
  state->sums = Matrix<std::int64_t>(stream.device(), kRows, kDim);
  std::vector<std::int64_t> some(1024 * kDim);
  for (std::size_t i = 0; i < some.size(); ++i) {
    some[i] = static_cast<std::int64_t>(random()) >> (32 + i / kDim % 7);
  }
  for (std::size_t first = 0; first < kRows; first += 1024) {
    copy<std::int64_t>(stream, state->sums.view().slice(first, 1024).flat(), View<std::int64_t const>(some));
  }
  state->order = to_device(stream, test::distinct_ids(random, kRows, kRows));
  state->starts = Array<std::uint64_t>(stream.device(), kernels::packed_blocks(kRows) + 1);
  state->bad_row = to_device(stream, std::vector{kernels::kNoRow});
  state->bytes = kernels::wait_pack_sums(stream, {state->sums, state->order});
  return state;
}

}  // namespace

Race pack_sums_race(Stream& stream) {
  auto const state = make_state(stream);
  double const bytes = static_cast<double>(kRows * (8 * kDim + 4) + state->bytes.size);
  return {"bytes",
          {"pack_sums", bytes,
           [state, &stream] {
             state->bytes = kernels::wait_pack_sums(stream, {state->sums, state->order});
           }},
          copy_side(stream)};
}

Race add_packed_sums_race(Stream& stream) {
  auto const state = make_state(stream);
  double const bytes = static_cast<double>(kRows * (16 * kDim + 4) + state->bytes.size);
  return {
      "bytes",
      {"add_packed_sums", bytes,
       [state, &stream] {
         kernels::wait_find_packed_rows(stream, state->rows(), state->starts);
         kernels::add_packed_sums(stream, {state->rows(), state->starts, state->order, state->sums, state->bad_row});
         stream.wait();
       }},
      copy_side(stream)};
}

}  // namespace gpups::bench
