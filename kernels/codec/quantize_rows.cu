// SPDX-License-Identifier: Apache-2.0
#include "kernels/codec/quantize_rows.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/codec/code.hpp"
#include "kernels/codec/packet_codes.hpp"
#include "kernels/codec/quantize_rows_host.hpp"
#include "kernels/codec/units.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

// The numbers of a row that are quantized: its values plus its residual.
struct RowToSend {
  float const* values;
  float const* residual;  // may be null
  std::size_t dim;
  std::size_t ahead;  // distance in floats to a row that is needed soon

  GPUPS_FN void prefetch(NativeLanes lanes, std::size_t first) const {
    lanes.prefetch(values + first + ahead, kPacketSize * sizeof(float));
    if (residual != nullptr) lanes.prefetch(residual + first + ahead, kPacketSize * sizeof(float));
  }
  // Loads the sums and, if there is a residual, what it was.
  GPUPS_FN void load(std::size_t first, float (&sum)[kPacketSize], float (&before)[kPacketSize]) const {
    load_packet(values, first, dim, sum);
    if (residual == nullptr) return;
    load_packet(residual, first, dim, before);
    for (std::size_t k = 0; k < kPacketSize; ++k) sum[k] += before[k];
  }
  // Returns the bits of the largest magnitude.
  GPUPS_FN static std::uint32_t most_bits(float const (&sum)[kPacketSize]) {
    std::uint32_t most = 0;
    for (std::size_t k = 0; k < kPacketSize; ++k) {
      std::uint32_t const bits = magnitude_bits(sum[k]);
      most = bits > most ? bits : most;
    }
    return most;
  }
};

template <Format F, Rounding R>
struct QuantizeRow {
  QuantizeRows q;

  GPUPS_FN void operator()(std::size_t i, NativeLanes lanes) const {
    std::size_t const dim = q.encoded.dim, row_bytes = code_bytes(F, dim);
    float* const residual = q.residual.rows() == 0 ? nullptr : q.residual.row(i);
    std::size_t const ahead = i + kRowsAhead < q.values.rows() ? kRowsAhead * q.values.stride() : 0;
    RowToSend const row{q.values.row(i), residual, dim, ahead};
    std::uint8_t* const codes = q.encoded.codes.data() + i * row_bytes;
#ifndef __CUDACC__
    if (F == Format::kInt8 && R == Rounding::kNearest && dim - 1 < kInt8ColumnsMost) {
      q.encoded.scales[i] = quantize_int8_row(row.values, residual, codes, dim, ahead);
      return;
    }
#endif
    RowScale scale{1, 1};
    HeldPacket<float> held;
    if constexpr (has_scale(F)) {
      scale = scale_of<F>(lanes.max_word(packets_of(dim), [&](std::size_t pack) {
        float sum[kPacketSize], before[kPacketSize];
        row.prefetch(lanes, pack * kPacketSize);
        row.load(pack * kPacketSize, sum, before);
        held.put(pack, sum);
        return RowToSend::most_bits(sum);
      }));
      if (lanes.first()) q.encoded.scales[i] = scale.scale;
    }
    lanes.each(packets_of(coded_columns(row_bytes, bits_of(F))), [&](std::size_t pack) {
      std::size_t const first = pack * kPacketSize;
      float sum[kPacketSize], before[kPacketSize];
      std::uint32_t code[kPacketSize];
      if constexpr (!has_scale(F)) row.prefetch(lanes, first);
      if (!has_scale(F) || !held.get(pack, sum)) row.load(first, sum, before);
      encode(i, first, sum, scale, code);
      PackedCodes<bits_of(F)>::of(code).store(codes, first, row_bytes);
      if (residual != nullptr && scale.scale == scale.scale) leave(sum, code, before, scale, residual, first);
    });
  }

 private:
  GPUPS_FN void encode(std::size_t i, std::size_t first, float const (&sum)[kPacketSize], RowScale scale,
                       std::uint32_t (&code)[kPacketSize]) const {
    if constexpr (R == Rounding::kStochastic) {
      float uniform[kPacketSize];
      draw_uniforms(q.rounding_key, i, first, uniform);
      for (std::size_t k = 0; k < kPacketSize; ++k) code[k] = Code<F>::encode(sum[k], scale.inverse, uniform[k]);
    } else {
      float scaled[kPacketSize];
      for (std::size_t k = 0; k < kPacketSize; ++k) scaled[k] = sum[k] * scale.inverse;
      encode_packet<F>(scaled, code);
    }
  }

  // Writes the residual. `before` is the previous one, for formats without a scale.
  GPUPS_FN void leave(float (&sum)[kPacketSize], std::uint32_t const (&code)[kPacketSize],
                      [[maybe_unused]] float const (&before)[kPacketSize], RowScale scale, float* residual,
                      std::size_t first) const {
    float decoded[kPacketSize];
    decode_packet<F>(code, decoded);
    for (std::size_t k = 0; k < kPacketSize; ++k) {
      float const left = sum[k] - decoded[k] * scale.scale;
      if constexpr (has_scale(F)) {
        sum[k] = left;
      } else {
        sum[k] = magnitude_bits(sum[k]) < kFloatInfinity ? left : before[k];
      }
    }
    store_packet(sum, residual, first, q.encoded.dim);
  }
};

struct RunQuantizeRows {
  QuantizeRows const& q;

  template <Format F, class Ex>
  void as(Ex ex) const {
    if constexpr (is_integer(F)) {
      if (q.rounding == Rounding::kStochastic) {
        each_row(ex, q.values.rows(), QuantizeRow<F, Rounding::kStochastic>{q});
        return;
      }
    }
    each_row(ex, q.values.rows(), QuantizeRow<F, Rounding::kNearest>{q});
  }
};

template <Space S>
void run(Exec<S> ex, QuantizeRows const& q) {
  GPUPS_ASSERT(q.residual.rows() == 0 ||
               (q.residual.rows() == q.values.rows() && q.residual.stride() == q.values.stride()));
  GPUPS_ASSERT(q.rounding == Rounding::kNearest || is_integer(q.encoded.format));
  assert_room(q.encoded, q.values.rows(), q.values.columns());
  with_format(ex, q.encoded.format, RunQuantizeRows{q});
}

GPUPS_KERNEL(quantize_rows, QuantizeRows)

// Calls take(first column, codes) for the first `packs` packets of row i.
template <Format F, class Take>
GPUPS_FN inline void each_coded_pack(EncodedRowsIn const& encoded, std::size_t i, std::size_t packs, NativeLanes lanes,
                                     Take take) {
  std::size_t const row_bytes = code_bytes(F, encoded.dim);
  std::uint8_t const* const codes = encoded.codes.data() + i * row_bytes;
  lanes.each(packs, [&](std::size_t pack) {
    PackedCodes<bits_of(F)> packed;
    std::uint32_t code[kPacketSize];
    packed.load(codes, pack * kPacketSize, row_bytes);
    packed.codes(code);
    take(pack * kPacketSize, code);
  });
}

template <Format F>
GPUPS_FN inline float row_scale(EncodedRowsIn const& encoded, std::size_t i) {
  return has_scale(F) ? encoded.scales[i] : 1.0F;
}
GPUPS_FN inline std::size_t target(View<std::uint32_t const> slots, std::size_t i) {
  return slots.empty() ? i : slots[i];
}

template <Format F, bool kAdd>
struct DequantizeRow {
  EncodedRowsIn encoded;
  View<std::uint32_t const> slots;
  MatrixView<float> out;

  GPUPS_FN void operator()(std::size_t i, NativeLanes lanes) const {
    float const scale = row_scale<F>(encoded, i);
    float* const to = out.row(target(slots, i));
    if (kAdd && i + kRowsAhead < encoded.rows()) {
      lanes.prefetch(out.row(target(slots, i + kRowsAhead)), encoded.dim * sizeof(float));
    }
    auto const take = [&](std::size_t first, std::uint32_t const(&code)[kPacketSize]) {
      float sum[kPacketSize] = {}, decoded[kPacketSize];
      decode_packet<F>(code, decoded);
      if constexpr (kAdd) load_packet<float>(to, first, encoded.dim, sum);
      for (std::size_t k = 0; k < kPacketSize; ++k) {
        float const value = decoded[k] * scale;
        sum[k] = kAdd ? sum[k] + value : value;
      }
      store_packet(sum, to, first, encoded.dim);
    };
    each_coded_pack<F>(encoded, i, packets_of(encoded.dim), lanes, take);
  }
};

template <Format F>
struct AddUnits {
  AddDequantizedSums a;

  GPUPS_FN void operator()(std::size_t i, NativeLanes lanes) const {
    auto const scale = UnitScale<F>::received(row_scale<F>(a.encoded, i), a.grid_log2);
    std::int64_t* const to = a.into.row(target(a.slots, i));
    if (i + kRowsAhead < a.encoded.rows()) {
      lanes.prefetch(a.into.row(target(a.slots, i + kRowsAhead)), a.encoded.dim * sizeof(std::int64_t));
    }
    auto const take = [&](std::size_t first, std::uint32_t const(&code)[kPacketSize]) {
      std::int64_t sum[kPacketSize];
      float decoded[kPacketSize];
      load_words(lanes, to, first, a.encoded.dim, sum);
      decode_packet<F>(code, decoded);
      for (std::size_t k = 0; k < kPacketSize; ++k) {
        auto const units = static_cast<std::uint64_t>(scale.units(decoded[k]));
        sum[k] = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum[k]) + units);
      }
      store_words(lanes, sum, to, first, a.encoded.dim);
    };
    each_coded_pack<F>(a.encoded, i, paired_packets(a.encoded.dim), lanes, take);
  }
};

struct RunDequantizeRows {
  DequantizeRows const& u;
  template <Format F, class Ex>
  void as(Ex ex) const {
    each_row(ex, u.encoded.rows(), DequantizeRow<F, false>{u.encoded, {}, u.out});
  }
};
struct RunAddDequantized {
  AddDequantized const& a;
  template <Format F, class Ex>
  void as(Ex ex) const {
    each_row(ex, a.encoded.rows(), DequantizeRow<F, true>{a.encoded, a.slots, a.into});
  }
};
struct RunAddDequantizedSums {
  AddDequantizedSums const& a;
  template <Format F, class Ex>
  void as(Ex ex) const {
    each_row(ex, a.encoded.rows(), AddUnits<F>{a});
  }
};

template <Space S>
void run(Exec<S> ex, DequantizeRows const& u) {
  GPUPS_ASSERT(u.out.rows() >= u.encoded.rows());
  assert_room(u.encoded, u.encoded.rows(), u.out.columns());
  with_format(ex, u.encoded.format, RunDequantizeRows{u});
}

template <Space S>
void run(Exec<S> ex, AddDequantized const& a) {
  GPUPS_ASSERT(a.slots.empty() ? a.into.rows() >= a.encoded.rows() : a.slots.size() >= a.encoded.rows());
  assert_room(a.encoded, a.encoded.rows(), a.into.columns());
  with_format(ex, a.encoded.format, RunAddDequantized{a});
}

template <Space S>
void run(Exec<S> ex, AddDequantizedSums const& a) {
  GPUPS_ASSERT(a.slots.empty() ? a.into.rows() >= a.encoded.rows() : a.slots.size() >= a.encoded.rows());
  GPUPS_ASSERT(a.into.stride() % 2 == 0);
  assert_room(a.encoded, a.encoded.rows(), a.into.columns());
  with_format(ex, a.encoded.format, RunAddDequantizedSums{a});
}

GPUPS_KERNEL(dequantize_rows, DequantizeRows)
GPUPS_KERNEL(add_dequantized, AddDequantized)
GPUPS_KERNEL(add_dequantized_sums, AddDequantizedSums)

}  // namespace gpups::kernels
