// SPDX-License-Identifier: Apache-2.0
#include "kernels/sum/sum_gradients.hpp"

#include <span>
#include <utility>
#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/base/contribution.hpp"
#include "kernels/runtime/launch.hpp"
#ifdef __CUDACC__
#include "kernels/codec/packet.hpp"
#include "kernels/runtime/device_scratch.hpp"
#include "kernels/runtime/segments.hpp"
#endif
#include "kernels/sum/sum_rows_host.hpp"

namespace gpups::kernels {

inline void check([[maybe_unused]] SumGradients const& s) {
  GPUPS_ASSERT(s.sources.empty() || s.sources.size() == s.order.size());
  GPUPS_ASSERT(s.coefficients.empty() || s.coefficients.size() == s.order.size());
  GPUPS_ASSERT(s.sums.rows() >= s.offsets.size() - 1 && s.source_rows.columns() >= s.sums.columns());
  GPUPS_ASSERT(s.sums.stride() % 2 == 0 && reinterpret_cast<std::uintptr_t>(s.sums.data()) % 16 == 0);
}

#ifdef __CUDACC__
// A team sums a row of up to kPieceEntries entries. Longer rows are cut into pieces of kPieceEntries entries, which any
// team may sum.
inline constexpr std::uint32_t kPieceEntries = 32;
// Sources that a lane loads before it adds the first of them: while a row of 512 bytes arrives from memory, nothing
// else keeps the lane busy.
inline constexpr std::uint32_t kSourcesAhead = 8;

inline constexpr Int128 kHighUnit = Int128{1} << 32;

// Long rows and their pieces, listed in the order in which teams find them. The sum of pieces is low + 2^32 * high, two
// words that no number of pieces can overflow.
struct LongRows {
  std::size_t rows_max, stride;
  std::uint64_t *low = nullptr, *high = nullptr;  // (rows_max, stride)
  std::uint32_t* counts = nullptr;                // (2): numbers of rows and of pieces
  std::uint32_t* bad = nullptr;                   // (rows_max): not 0 if a contribution is not valid
  std::uint32_t* rows = nullptr;                  // (rows_max)
  uint2* pieces = nullptr;                        // (pieces_max): the index in `rows`, and the piece of the row

  GPUPS_ANY_FN std::size_t pieces_max() const { return 2 * rows_max; }
  // Returns where the words of column j + k of a row are, for j a multiple of 4 and k below 4. A lane has four columns
  // from j on; what the lanes of a team write for the same k is in consecutive words.
  __device__ std::size_t at(std::size_t row, std::size_t j, std::size_t k) const {
    std::size_t const first = j / (4 * kLanes) * (4 * kLanes), left = stride - first;
    std::size_t const lanes = left < 4 * kLanes ? left / 4 : kLanes;
    return row * stride + first + k * lanes + (j - first) / 4;
  }
  std::size_t bytes() const { return 16 * rows_max * stride + 4 * (2 + 2 * rows_max) + sizeof(uint2) * pieces_max(); }
  // Places the arrays in memory of bytes() bytes, which must be zero at the beginning.
  void place(void* memory) {
    low = static_cast<std::uint64_t*>(memory);
    high = low + rows_max * stride;
    counts = reinterpret_cast<std::uint32_t*>(high + rows_max * stride);
    bad = counts + 2;
    rows = bad + rows_max;
    pieces = reinterpret_cast<uint2*>(rows + rows_max);  // after an even number of words
  }
};

// Returns the distance from the scratch memory of a part to that of the next, in bytes. A part without long rows has
// none.
inline std::size_t scratch_bytes(LongRows const& all) {
  return all.rows_max == 0 ? 0 : (all.bytes() + sizeof(uint2) - 1) / sizeof(uint2) * sizeof(uint2);
}

// An entry: its source, and the coefficient of it.
struct SummedEntry {
  std::uint32_t row;
  float coefficient;
};

// Returns an entry of a batch. A source index that does not exist reads row 0; see check_row_numbers().
__device__ inline SummedEntry entry_of(SumGradients const& s, std::uint32_t entry) {
  std::uint32_t const row = s.sources.empty() ? entry : s.sources[entry];
  float const coefficient = s.coefficients.empty() ? 1.0F : s.coefficients[entry];
  return {row < s.source_rows.rows() ? row : 0, coefficient};
}

// The entries of a team, of which each lane holds some, so that they are loaded together.
struct TeamEntries {
  static constexpr std::uint32_t kOfLane = kPieceEntries / kLanes;
  SummedEntry held[kOfLane];
  std::uint32_t count;

  // Loads the entries at positions first .. first + count - 1 of `order`. REQUIRES: count <= kPieceEntries.
  __device__ TeamEntries(NativeLanes lanes, SumGradients const& s, std::uint32_t first, std::uint32_t of_team)
      : count(of_team) {
    std::uint32_t numbers[kOfLane];
#pragma unroll
    for (std::uint32_t h = 0; h < kOfLane; ++h) {
      std::uint32_t const k = h * kLanes + lanes.lane;
      numbers[h] = k < count ? s.order[first + k] : 0;
    }
#pragma unroll
    for (std::uint32_t h = 0; h < kOfLane; ++h) {
      bool const exists = h * kLanes + lanes.lane < count;
      held[h] = exists ? entry_of(s, numbers[h]) : SummedEntry{0, 0};
    }
  }
  // Returns entry k to all lanes. All lanes call it with the same k, below kPieceEntries.
  __device__ SummedEntry at(NativeLanes lanes, std::uint32_t k) const {
    SummedEntry mine = held[0];
#pragma unroll
    for (std::uint32_t h = 1; h < kOfLane; ++h) mine = k / kLanes == h ? held[h] : mine;
    int const lane = static_cast<int>(k % kLanes);
    return {__shfl_sync(lanes.mask, mine.row, lane, kLanes), __shfl_sync(lanes.mask, mine.coefficient, lane, kLanes)};
  }
};

// Returns four columns of a source, of which `count` exist.
__device__ inline float4 quad_at(float const* from, std::size_t count, bool aligned) {
  if (aligned) return *reinterpret_cast<float4 const*>(from);
  return {from[0], count > 1 ? from[1] : 0, count > 2 ? from[2] : 0, count > 3 ? from[3] : 0};
}

// Sums the entries at positions first .. last - 1 of `order`, at most kPieceEntries, and calls take(j, sums) for the
// columns from j on. A lane sums four columns at a time. Lanes 2 k and 2 k + 1 call take() together, also if the
// columns are beyond the stride.
template <class Take>
__device__ void sum_entries(NativeLanes lanes, SumGradients const& s, double per_grid, std::uint32_t first,
                            std::uint32_t last, Take take) {
  std::size_t const dim = s.sums.columns();
  bool const aligned =
      s.source_rows.stride() % 4 == 0 && reinterpret_cast<std::uintptr_t>(s.source_rows.data()) % sizeof(float4) == 0;
  TeamEntries const entries(lanes, s, first, last - first);
  // All lanes of a team share the entries, so they go on together, also beyond the columns.
  for (std::size_t pass = 0; pass < s.sums.stride(); pass += 4 * kLanes) {
    std::size_t const j = pass + 4 * lanes.lane;
    WideSum sum[4] = {{0, true}, {0, true}, {0, true}, {0, true}};
    std::size_t const count = j < dim ? dim - j : 0;
    for (std::uint32_t k = 0; k < entries.count; k += kSourcesAhead) {
      float4 x[kSourcesAhead];
      float c[kSourcesAhead];
#pragma unroll
      for (std::uint32_t a = 0; a < kSourcesAhead; ++a) {
        if (k + a >= entries.count) break;
        SummedEntry const entry = entries.at(lanes, k + a);
        c[a] = entry.coefficient;
        if (count > 0) x[a] = quad_at(s.source_rows.row(entry.row) + j, count, aligned);
      }
#pragma unroll
      for (std::uint32_t a = 0; a < kSourcesAhead; ++a) {
        if (k + a >= entries.count || count == 0) break;
        sum[0].add(c[a], x[a].x, per_grid);
        if (count > 1) sum[1].add(c[a], x[a].y, per_grid);
        if (count > 2) sum[2].add(c[a], x[a].z, per_grid);
        if (count > 3) sum[3].add(c[a], x[a].w, per_grid);
      }
    }
    if (j / 8 * 8 < s.sums.stride()) take(j, sum);
  }
}

// Writes the sums of four columns of row r, and reports the row if one is not valid. Two lanes write theirs together.
__device__ inline void put_sums(NativeLanes lanes, SumGradients const& s, std::uint32_t r, std::size_t j,
                                WideSum const (&sum)[4]) {
  std::int64_t units[4];
  bool fits = true;
#pragma unroll
  for (std::size_t k = 0; k < 4; ++k) {
    units[k] = static_cast<std::int64_t>(sum[k].units);
    fits = fits && sum[k].fits();
  }
  store_words(lanes, units, s.sums.row(r), j, s.sums.stride());
  if (!fits) atomic_min(s.bad_row.data(), r);
}

// Lists the pieces of a long row.
__device__ inline void cut(NativeLanes lanes, LongRows const& all, std::uint32_t r, std::uint32_t entries) {
  std::uint32_t const count = (entries + kPieceEntries - 1) / kPieceEntries;
  std::uint32_t row = 0, piece = 0;
  if (lanes.first()) {
    row = atomic_add(all.counts, 1);
    piece = atomic_add(all.counts + 1, count);
    all.rows[row] = r;
  }
  row = __shfl_sync(lanes.mask, row, 0, kLanes);
  piece = __shfl_sync(lanes.mask, piece, 0, kLanes);
  for (std::uint32_t p = lanes.lane; p < count; p += kLanes) all.pieces[piece + p] = {row, p};
}

// Adds the sums of a piece to those of its row.
__device__ inline void sum_piece(NativeLanes lanes, SumGradients const& s, double per_grid, LongRows const& all,
                                 uint2 piece) {
  std::uint32_t const r = all.rows[piece.x], end = s.offsets[r + 1], first = s.offsets[r] + piece.y * kPieceEntries;
  std::uint32_t const last = end - first < kPieceEntries ? end : first + kPieceEntries;
  sum_entries(lanes, s, per_grid, first, last, [&](std::size_t j, WideSum const(&sum)[4]) {
    for (std::size_t k = 0; k < 4 && j < all.stride; ++k) {
      auto const at = all.at(piece.x, j, k);
      atomic_add(all.low + at, static_cast<std::uint64_t>(sum[k].units) & 0xFFFFFFFFU);
      atomic_add(all.high + at, static_cast<std::uint64_t>(static_cast<std::int64_t>(sum[k].units >> 32)));
      if (!sum[k].good) atomic_add(all.bad + piece.x, 1);
    }
  });
}

// The rows of one part.
struct SummedRows {
  SumGradients s;
  double per_grid;
  LongRows all;
};

inline void sum_parts(DeviceExec ex, std::span<SumGradients const> parts) {
  std::vector<SummedRows> summed;
  std::size_t bytes = 0;
  for (auto const& s : parts) {
    LongRows const all{.rows_max = s.order.size() / kPieceEntries, .stride = s.sums.stride()};
    summed.push_back({s, std::ldexp(1.0, -s.grid_log2), all});
    bytes += scratch_bytes(all);
  }
  StreamScratch const scratch(ex, bytes);
  if (bytes > 0) {
    check_cuda(cudaMemsetAsync(scratch.data(), 0, bytes, static_cast<cudaStream_t>(ex.stream)), "clearing sums");
  }
  auto* memory = static_cast<std::byte*>(scratch.data());
  for (auto& part : summed) {
    part.all.place(memory);
    memory += scratch_bytes(part.all);
  }
  SegmentList<SummedRows, 3> const list(
      ex, std::move(summed), [](SummedRows const& p) { return p.s.offsets.size() - 1; },
      [](SummedRows const& p) { return p.all.pieces_max(); }, [](SummedRows const& p) { return p.all.rows_max; });
  each_row_item(ex, list.segments(0), [] GPUPS_FN(SummedRows const& p, std::size_t i, NativeLanes lanes) {
    auto const r = static_cast<std::uint32_t>(i);
    std::uint32_t const first = p.s.offsets[r], last = p.s.offsets[r + 1];
    if (last - first > kPieceEntries) return cut(lanes, p.all, r, last - first);
    sum_entries(lanes, p.s, p.per_grid, first, last,
                [&](std::size_t j, WideSum const(&sum)[4]) { put_sums(lanes, p.s, r, j, sum); });
  });
  each_row_item(ex, list.segments(1), [] GPUPS_FN(SummedRows const& p, std::size_t i, NativeLanes lanes) {
    if (i < p.all.counts[1]) sum_piece(lanes, p.s, p.per_grid, p.all, p.all.pieces[i]);
  });
  each_row_item(ex, list.segments(2), [] GPUPS_FN(SummedRows const& p, std::size_t i, NativeLanes lanes) {
    LongRows const& all = p.all;
    if (i >= all.counts[0]) return;
    for (std::size_t j = 4 * lanes.lane; j / 8 * 8 < all.stride; j += 4 * kLanes) {
      WideSum sum[4] = {{0, true}, {0, true}, {0, true}, {0, true}};
      for (std::size_t k = 0; k < 4 && j < all.stride; ++k) {
        auto const low = static_cast<Int128>(all.low[all.at(i, j, k)]);
        auto const high = static_cast<Int128>(static_cast<std::int64_t>(all.high[all.at(i, j, k)]));
        sum[k] = {low + high * kHighUnit, all.bad[i] == 0};
      }
      put_sums(lanes, p.s, all.rows[i], j, sum);
    }
  });
}
#else
inline void sum_part(HostExec ex, SumGradients const& s) {
  double const per_grid = std::ldexp(1.0, -s.grid_log2);
  auto const take = [&s](std::uint32_t r, bool fits) {
    if (!fits) atomic_min(s.bad_row.data(), r);
  };
  auto const short_row = [&](std::uint32_t r, RowEntries const& entries) {
    take(r, sum_any_row(s, per_grid, entries, s.sums.row(r)));
  };
  auto const long_row = [&](std::uint32_t r, auto add_pieces) { take(r, add_pieces(s.sums.row(r))); };
  each_row_to_sum(
      ex, s, per_grid, [](std::size_t) {}, short_row, long_row);
}

inline void sum_parts(HostExec ex, std::span<SumGradients const> parts) {
  for (auto const& part : parts) sum_part(ex, part);
}
#endif

struct SumGradientsOfAll {
  std::span<SumGradients const> parts;
};

template <Space S>
void run(Exec<S> ex, SumGradientsOfAll const& all) {
  std::vector<SumGradients> filled;
  for (auto const& part : all.parts) {
    if (part.offsets.size() < 2) continue;
    check(part);
    filled.push_back(part);
  }
  if (!filled.empty()) sum_parts(ex, filled);
}

GPUPS_KERNEL(sum_gradients_of_all, SumGradientsOfAll)

#ifndef __CUDACC__
void sum_gradients(Stream& stream, std::span<SumGradients const> parts) { sum_gradients_of_all(stream, {parts}); }
#endif

}  // namespace gpups::kernels
