// SPDX-License-Identifier: Apache-2.0
#include "kernels/wire/pack_sums.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/assert.hpp"
#include "kernels/atomic.hpp"
#include "kernels/nontemporal.hpp"
#include "kernels/row_storage.hpp"
#include "kernels/wire/each_packed_row.hpp"
#include "kernels/wire/pack_host.hpp"

namespace gpups::kernels {

// -- a row --

GPUPS_FN inline std::uint32_t width_of(std::int64_t const* row, std::size_t dim, [[maybe_unused]] NativeLanes lanes) {
#ifdef GPUPS_PACK_VECTORS
  return width_of_row(row, dim);
#else
  return lanes.max_word(dim, [=](std::size_t j) { return bytes_of_integer(row[j]); });
#endif
}

// Calls f.template as<width>() for a width of 1 to 8.
template <class F>
GPUPS_FN inline void with_width(std::uint32_t width, F f) {
  switch (width) {
    case 1:
      return f.template as<1>();
    case 2:
      return f.template as<2>();
    case 3:
      return f.template as<3>();
    case 4:
      return f.template as<4>();
    case 5:
      return f.template as<5>();
    case 6:
      return f.template as<6>();
    case 7:
      return f.template as<7>();
    default:
      return f.template as<8>();
  }
}

// Stores the low W bytes of a word, in one access if the address is aligned.
template <std::size_t W>
GPUPS_FN inline void store_bytes(std::uint64_t x, std::uint8_t* to) {
#ifdef __CUDACC__
  bool const aligned = reinterpret_cast<std::uintptr_t>(to) % W == 0;
  if (W == 2 && aligned) return void(*reinterpret_cast<std::uint16_t*>(to) = static_cast<std::uint16_t>(x));
  if (W == 4 && aligned) return void(*reinterpret_cast<std::uint32_t*>(to) = static_cast<std::uint32_t>(x));
  if (W == 8 && aligned) return void(*reinterpret_cast<std::uint64_t*>(to) = x);
#pragma unroll
  for (std::size_t b = 0; b < W; ++b) to[b] = static_cast<std::uint8_t>(x >> 8 * b);
#else
  std::memcpy(to, &x, W);
#endif
}
template <std::size_t W>
GPUPS_FN inline std::int64_t load_bytes(std::uint8_t const* from) {
  std::uint64_t x = 0;
#ifdef __CUDACC__
  bool const aligned = reinterpret_cast<std::uintptr_t>(from) % W == 0;
  if (W == 4 && aligned) {
    x = *reinterpret_cast<std::uint32_t const*>(from);
  } else if (W == 2 && aligned) {
    x = *reinterpret_cast<std::uint16_t const*>(from);
  } else if (W == 8 && aligned) {
    x = *reinterpret_cast<std::uint64_t const*>(from);
  } else {
#pragma unroll
    for (std::size_t b = 0; b < W; ++b) x |= std::uint64_t{from[b]} << 8 * b;
  }
#else
  std::memcpy(&x, from, W);
#endif
  return static_cast<std::int64_t>(x << (64 - 8 * W)) >> (64 - 8 * W);
}

struct WriteRow {
  std::int64_t const* row;
  std::size_t dim;
  std::uint8_t* to;
  NativeLanes lanes;

  template <std::size_t W>
  GPUPS_FN void as() const {
    lanes.each(dim, [*this](std::size_t j) { store_bytes<W>(static_cast<std::uint64_t>(row[j]), to + j * W); });
  }
};

struct AddRow {
  std::uint8_t const* from;
  std::size_t dim;
  std::int64_t* into;
  NativeLanes lanes;
  std::uint64_t* overflows;

  template <std::size_t W>
  GPUPS_FN void as() const {
    // An addition has overflowed if the sign of the sum differs from the signs of both terms.
    *overflows = lanes.sum_words(dim, [*this](std::size_t j) {
      auto const a = static_cast<std::uint64_t>(into[j]), b = static_cast<std::uint64_t>(load_bytes<W>(from + j * W));
      std::uint64_t const sum = a + b;
      into[j] = static_cast<std::int64_t>(sum);
      return ((sum ^ a) & (sum ^ b)) >> 63;
    });
  }
};

// -- writing --

// The functions that write_packed() calls.
struct PackWriter {
  PackSums n;
  std::size_t ahead;  // prefetch distance in rows

  GPUPS_FN std::int64_t const* row(std::size_t i) const { return n.sums.row(n.order[i]); }
  GPUPS_FN std::uint32_t width(std::size_t i, NativeLanes lanes) const {
    prefetch_ahead(i);
    return width_of(row(i), n.sums.columns(), lanes);
  }
  // Prefetches the first cache line of a later row, and the rest of a row that comes earlier, as in copy_rows_host.hpp.
  // A GPU hides the latency with other teams.
  GPUPS_INLINED_FN void prefetch_ahead([[maybe_unused]] std::size_t i) const {
#ifndef __CUDACC__
    std::size_t const row_bytes = n.sums.columns() * sizeof(std::int64_t);
    std::size_t const rest = ahead / 2;
    if (i + ahead < n.order.size()) prefetch_row<PrefetchTarget::kToL2>(row(i + ahead), 1);
    if (i + rest < n.order.size() && row_bytes > kLineBytes) {
      prefetch_row<PrefetchTarget::kToL2>(row(i + rest) + kLineBytes / sizeof(std::int64_t), row_bytes - kLineBytes);
    }
#endif
  }
  GPUPS_FN void write(std::size_t i, std::uint32_t width, std::uint8_t* to, [[maybe_unused]] NativeLanes lanes) const {
#ifdef GPUPS_PACK_VECTORS
    write_row(row(i), n.sums.columns(), width, to);
#else
    with_width(width, WriteRow{row(i), n.sums.columns(), to, lanes});
#endif
  }
};

inline std::size_t rows_ahead(std::size_t row_bytes) { return std::clamp<std::size_t>(16384 / row_bytes, 4, 64); }

struct PackSumsTo {
  PackSums sums;
  PackedBytes* bytes;  // on the host
};

template <Space S>
void run(Exec<S> ex, PackSumsTo const& to) {
  *to.bytes = write_packed(ex, to.sums.sums.device(), to.sums.order.size(), to.sums.sums.columns(),
                           PackWriter{to.sums, rows_ahead(to.sums.sums.columns() * sizeof(std::int64_t))});
}
GPUPS_KERNEL(pack_sums_to, PackSumsTo)

// -- reading --

struct FindPackedRows {
  PackedRows rows;
  View<std::uint64_t> starts;
  bool* found;  // on the host
};

template <Space S>
void run(Exec<S> ex, FindPackedRows const& f) {
  GPUPS_ASSERT(f.starts.size() > packed_blocks(f.rows.rows));
  std::size_t const head = packed_header_bytes(f.rows.rows);
  *f.found = f.rows.bytes.size() >= head && wait_find_starts(ex, f.rows, f.starts) == f.rows.bytes.size() - head;
}
GPUPS_KERNEL(find_packed_rows, FindPackedRows)

struct AddPackedRow {
  AddPackedSums a;

  GPUPS_FN std::uint32_t slot(std::size_t i) const {
    return a.slots.empty() ? static_cast<std::uint32_t>(i) : a.slots[i];
  }
  GPUPS_FN void operator()(std::size_t i, std::uint32_t width, std::size_t start, NativeLanes lanes) const {
    std::size_t const dim = a.rows.dim;
    if (i + kRowsAhead < a.rows.rows) {
      lanes.prefetch(a.into.row(slot(i + kRowsAhead)), dim * sizeof(std::int64_t));
    }
    if (width == 0) return;
    std::uint8_t const* const from = a.rows.bytes.data() + packed_header_bytes(a.rows.rows) + start;
    std::int64_t* const into = a.into.row(slot(i));
#ifdef GPUPS_PACK_VECTORS
    std::uint64_t const overflows = add_row(from, dim, width, into) ? 1 : 0;
#else
    std::uint64_t overflows = 0;
    with_width(width, AddRow{from, dim, into, lanes, &overflows});
#endif
    if (overflows > 0 && lanes.first()) atomic_min(a.bad_row.data(), slot(i));
  }
};

template <Space S>
void run(Exec<S> ex, AddPackedSums const& a) {
  GPUPS_ASSERT(a.slots.empty() || a.slots.size() >= a.rows.rows);
  each_packed_row(ex, a.rows, a.starts, AddPackedRow{a});
}
GPUPS_KERNEL(add_packed_sums, AddPackedSums)

#ifndef __CUDACC__
PackedBytes wait_pack_sums(Stream& stream, PackSums const& arguments) {
  PackedBytes bytes;
  pack_sums_to(stream, {arguments, &bytes});
  return bytes;
}

bool wait_find_packed_rows(Stream& stream, PackedRows const& rows, View<std::uint64_t> starts) {
  bool found = false;
  find_packed_rows(stream, {rows, starts, &found});
  return found;
}
#endif

}  // namespace gpups::kernels
