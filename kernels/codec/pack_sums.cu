// SPDX-License-Identifier: Apache-2.0
#include "kernels/codec/pack_sums.hpp"

#include <utility>
#include <vector>

#include "kernels/base/assert.hpp"
#include "kernels/codec/each_packed_row.hpp"
#ifdef __CUDACC__
#include "kernels/codec/pack_sums_device.hpp"
#else
#include "kernels/codec/pack_sums_host.hpp"
#endif

namespace gpups::kernels {

struct PackSumsOfAll {
  std::span<PackSums const> parts;
  PackedParts* packed;  // on the host
};

template <Space S>
void run(Exec<S> ex, PackSumsOfAll const& all) {
  if (!all.parts.empty()) *all.packed = write_packed(ex, all.parts);
}
GPUPS_KERNEL(pack_sums_of_all, PackSumsOfAll)

struct FindPackedRows {
  std::span<PackedRowStarts const> parts;
  View<std::uint32_t> wrong;
};

template <Space S>
void run(Exec<S> ex, FindPackedRows const& f) {
  std::vector<PackedRowStarts> fitting;
  for (auto const& part : f.parts) {
    GPUPS_ASSERT(part.starts.size() > packed_blocks(part.rows.rows));
    if (part.rows.bytes.size() < packed_header_bytes(part.rows.rows)) break;
    fitting.push_back(part);
  }
  find_starts(ex, fitting, fitting.size() < f.parts.size() ? static_cast<std::uint32_t>(fitting.size()) : kNoRow,
              f.wrong.data());
}
GPUPS_KERNEL(find_packed_rows, FindPackedRows)

struct AddPackedSumsOfAll {
  std::span<AddPackedSums const> parts;
};

template <Space S>
void run(Exec<S> ex, AddPackedSumsOfAll const& all) {
  std::vector<AddPackedRow> rows;
  for (auto const& part : all.parts) {
    GPUPS_ASSERT(part.slots.empty() || part.slots.size() >= part.rows.rows);
    rows.push_back({part});
  }
  each_packed_row(ex, std::move(rows));
}
GPUPS_KERNEL(add_packed_sums_of_all, AddPackedSumsOfAll)

#ifndef __CUDACC__
void PackedParts::set_places(std::span<std::uint64_t const> read) {
  std::size_t const parts = read.size() / 2;
  first.assign(read.begin(), read.begin() + static_cast<std::ptrdiff_t>(parts + 1));
  size.assign(read.begin() + static_cast<std::ptrdiff_t>(parts + 1), read.end());
}

PackedParts pack_sums(Stream& stream, std::span<PackSums const> parts) {
  PackedParts packed;
  pack_sums_of_all(stream, {parts, &packed});
  return packed;
}

PackedBytes wait_pack_sums(Stream& stream, PackSums const& part) {
  auto packed = pack_sums(stream, std::span(&part, 1));
  packed.set_places(to_host(stream, packed.places.view()));
  return {std::move(packed.memory), packed.size[0]};
}

void find_packed_rows(Stream& stream, std::span<PackedRowStarts const> parts, View<std::uint32_t> wrong) {
  find_packed_rows(stream, {parts, wrong});
}

bool wait_find_packed_rows(Stream& stream, PackedRows const& rows, View<std::uint64_t> starts) {
  PackedRowStarts const part{rows, starts};
  Array<std::uint32_t> const wrong(stream.device(), 1);
  find_packed_rows(stream, std::span(&part, 1), wrong);
  return to_host(stream, wrong.view())[0] == kNoRow;
}

void add_packed_sums(Stream& stream, std::span<AddPackedSums const> parts) { add_packed_sums_of_all(stream, {parts}); }
#endif

}  // namespace gpups::kernels
