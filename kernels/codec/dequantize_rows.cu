// SPDX-License-Identifier: Apache-2.0
#include "kernels/codec/dequantize_rows.hpp"

#include "kernels/codec/packet_codes.hpp"
#include "kernels/codec/units.hpp"
#include "kernels/codec/with_format.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

// Calls take(first column, codes) for the first `packs` packets of row i.
template <Format F, class Take>
GPUPS_FN inline void each_coded_pack(WireRowsIn const& wire, std::size_t i, std::size_t packs, NativeLanes lanes,
                                     Take take) {
  std::size_t const row_bytes = code_bytes(F, wire.dim);
  std::uint8_t const* const codes = wire.codes.data() + i * row_bytes;
  lanes.each(packs, [&](std::size_t pack) {
    PackedCodes<bits_of(F)> packed;
    std::uint32_t code[kPacketSize];
    packed.load(codes, pack * kPacketSize, row_bytes);
    packed.codes(code);
    take(pack * kPacketSize, code);
  });
}

template <Format F>
GPUPS_FN inline float row_scale(WireRowsIn const& wire, std::size_t i) {
  return has_scale(F) ? wire.scales[i] : 1.0F;
}
GPUPS_FN inline std::size_t target(View<std::uint32_t const> slots, std::size_t i) {
  return slots.empty() ? i : slots[i];
}

template <Format F, bool kAdd>
struct DequantizeRow {
  WireRowsIn wire;
  View<std::uint32_t const> slots;
  MatrixView<float> out;

  GPUPS_FN void operator()(std::size_t i, NativeLanes lanes) const {
    float const scale = row_scale<F>(wire, i);
    float* const to = out.row(target(slots, i));
    if (kAdd && i + kRowsAhead < wire.rows()) {
      lanes.prefetch(out.row(target(slots, i + kRowsAhead)), wire.dim * sizeof(float));
    }
    auto const take = [&](std::size_t first, std::uint32_t const(&code)[kPacketSize]) {
      float sum[kPacketSize] = {}, decoded[kPacketSize];
      decode_packet<F>(code, decoded);
      if constexpr (kAdd) load_packet<float>(to, first, wire.dim, sum);
      for (std::size_t k = 0; k < kPacketSize; ++k) {
        float const value = decoded[k] * scale;
        sum[k] = kAdd ? sum[k] + value : value;
      }
      store_packet(sum, to, first, wire.dim);
    };
    each_coded_pack<F>(wire, i, packets_of(wire.dim), lanes, take);
  }
};

template <Format F>
struct AddUnits {
  AddDequantizedSums a;

  GPUPS_FN void operator()(std::size_t i, NativeLanes lanes) const {
    auto const scale = UnitScale<F>::received(row_scale<F>(a.wire, i), a.grid_log2);
    std::int64_t* const to = a.into.row(target(a.slots, i));
    if (i + kRowsAhead < a.wire.rows()) {
      lanes.prefetch(a.into.row(target(a.slots, i + kRowsAhead)), a.wire.dim * sizeof(std::int64_t));
    }
    auto const take = [&](std::size_t first, std::uint32_t const(&code)[kPacketSize]) {
      std::int64_t sum[kPacketSize];
      float decoded[kPacketSize];
      load_words(lanes, to, first, a.wire.dim, sum);
      decode_packet<F>(code, decoded);
      for (std::size_t k = 0; k < kPacketSize; ++k) {
        auto const units = static_cast<std::uint64_t>(scale.units(decoded[k]));
        sum[k] = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum[k]) + units);
      }
      store_words(lanes, sum, to, first, a.wire.dim);
    };
    each_coded_pack<F>(a.wire, i, paired_packets(a.wire.dim), lanes, take);
  }
};

struct RunDequantizeRows {
  DequantizeRows const& u;
  template <Format F, class Ex>
  void as(Ex ex) const {
    each_row(ex, u.wire.rows(), DequantizeRow<F, false>{u.wire, {}, u.out});
  }
};
struct RunAddDequantized {
  AddDequantized const& a;
  template <Format F, class Ex>
  void as(Ex ex) const {
    each_row(ex, a.wire.rows(), DequantizeRow<F, true>{a.wire, a.slots, a.into});
  }
};
struct RunAddDequantizedSums {
  AddDequantizedSums const& a;
  template <Format F, class Ex>
  void as(Ex ex) const {
    each_row(ex, a.wire.rows(), AddUnits<F>{a});
  }
};

template <Space S>
void run(Exec<S> ex, DequantizeRows const& u) {
  GPUPS_ASSERT(u.out.rows() >= u.wire.rows());
  assert_room(u.wire, u.wire.rows(), u.out.columns());
  with_format(ex, u.wire.format, RunDequantizeRows{u});
}

template <Space S>
void run(Exec<S> ex, AddDequantized const& a) {
  GPUPS_ASSERT(a.slots.empty() ? a.into.rows() >= a.wire.rows() : a.slots.size() >= a.wire.rows());
  assert_room(a.wire, a.wire.rows(), a.into.columns());
  with_format(ex, a.wire.format, RunAddDequantized{a});
}

template <Space S>
void run(Exec<S> ex, AddDequantizedSums const& a) {
  GPUPS_ASSERT(a.slots.empty() ? a.into.rows() >= a.wire.rows() : a.slots.size() >= a.wire.rows());
  GPUPS_ASSERT(a.into.stride() % 2 == 0);
  assert_room(a.wire, a.wire.rows(), a.into.columns());
  with_format(ex, a.wire.format, RunAddDequantizedSums{a});
}

GPUPS_KERNEL(dequantize_rows, DequantizeRows)
GPUPS_KERNEL(add_dequantized, AddDequantized)
GPUPS_KERNEL(add_dequantized_sums, AddDequantizedSums)

}  // namespace gpups::kernels
