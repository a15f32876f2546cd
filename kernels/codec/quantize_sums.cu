// SPDX-License-Identifier: Apache-2.0
#include "kernels/codec/quantize_sums.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/base/atomic.hpp"
#include "kernels/codec/code.hpp"
#include "kernels/codec/packet_codes.hpp"
#include "kernels/codec/units.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

template <Format F, Rounding R>
struct QuantizeSumsRow {
  QuantizeSums q;

  GPUPS_FN void operator()(std::size_t i, NativeLanes lanes) const {
    std::size_t const dim = q.encoded.dim, row_bytes = code_bytes(F, dim);
    HeldPacket<std::int64_t> held;
    std::uint32_t const most = lanes.max_word(paired_packets(dim), [&](std::size_t pack) {
      std::int64_t total[kPacketSize];
      bool const good = load(i, pack * kPacketSize, lanes, total);
      held.put(pack, total);
      return good ? most_bits(total) : kOverflown;
    });
    if (most == kOverflown) {
      if (lanes.first()) atomic_min(q.bad_row.data(), static_cast<std::uint32_t>(i));
      return;
    }
    UnitScale<F> const scale = UnitScale<F>::of(most, q.grid_log2);
    if (has_scale(F) && lanes.first()) q.encoded.scales[i] = scale.sent();
    std::uint8_t* const codes = q.encoded.codes.data() + i * row_bytes;
    lanes.each(paired_packets(coded_columns(row_bytes, bits_of(F))), [&](std::size_t pack) {
      std::size_t const first = pack * kPacketSize;
      std::int64_t total[kPacketSize];
      std::uint32_t code[kPacketSize];
      if (!held.get(pack, total)) load(i, first, lanes, total);
      if constexpr (R == Rounding::kStochastic) {
        float uniform[kPacketSize];
        draw_uniforms(q.rounding_key, i, first, uniform);
        for (std::size_t k = 0; k < kPacketSize; ++k) code[k] = Code<F>::encode(scale.scaled(total[k]), 1, uniform[k]);
      } else {
        float scaled[kPacketSize];
        for (std::size_t k = 0; k < kPacketSize; ++k) scaled[k] = scale.scaled(total[k]);
        encode_packet<F>(scaled, code);
      }
      PackedCodes<bits_of(F)>::of(code).store(codes, first, row_bytes);
      float sent[kPacketSize];
      decode_packet<F>(code, sent);
      for (std::size_t k = 0; k < kPacketSize; ++k) total[k] -= scale.units(sent[k]);
      store_words(lanes, total, q.residual.row(i), first, dim);
    });
  }

 private:
  // Loads sums plus residuals. Returns false if one is out of range.
  GPUPS_FN bool load(std::size_t i, std::size_t first, NativeLanes lanes, std::int64_t (&total)[kPacketSize]) const {
    std::int64_t more[kPacketSize] = {};
    load_words(lanes, q.residual.row(i), first, q.encoded.dim, total);
    if (q.sums.rows() > 0) load_words(lanes, q.sums.row(i), first, q.encoded.dim, more);
    std::uint64_t bad = 0;
    for (std::size_t k = 0; k < kPacketSize; ++k) total[k] = add_units(total[k], more[k], bad);
    return bad >> 63 == 0;
  }
  GPUPS_FN static std::uint32_t most_bits(std::int64_t const (&total)[kPacketSize]) {
    std::uint32_t most = 0;
    for (std::size_t k = 0; k < kPacketSize; ++k) {
      std::uint32_t const bits = bits_above(total[k]);
      most = bits > most ? bits : most;
    }
    return most;
  }
};

struct RunQuantizeSums {
  QuantizeSums const& q;

  template <Format F, class Ex>
  void as(Ex ex) const {
    if constexpr (is_integer(F)) {
      if (q.rounding == Rounding::kStochastic) {
        each_row(ex, q.residual.rows(), QuantizeSumsRow<F, Rounding::kStochastic>{q});
        return;
      }
    }
    each_row(ex, q.residual.rows(), QuantizeSumsRow<F, Rounding::kNearest>{q});
  }
};

template <Space S>
void run(Exec<S> ex, QuantizeSums const& q) {
  GPUPS_ASSERT(q.grid_log2 <= 0 && q.residual.stride() % 2 == 0);
  GPUPS_ASSERT(q.sums.rows() == 0 || (q.residual.rows() == q.sums.rows() && q.residual.stride() == q.sums.stride()));
  GPUPS_ASSERT(q.rounding == Rounding::kNearest || is_integer(q.encoded.format));
  assert_room(q.encoded, q.residual.rows(), q.residual.columns());
  with_format(ex, q.encoded.format, RunQuantizeSums{q});
}

GPUPS_KERNEL(quantize_sums, QuantizeSums)

template <Space S>
void run(Exec<S> ex, ExtractSums const& t) {
  std::size_t const dim = t.rows.columns();
  GPUPS_ASSERT(t.words.size() >= t.rows.rows() * dim);
  each_row(ex, t.rows.rows(), [t, dim] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::int64_t* const from = t.rows.row(i);
    std::int64_t* const to = t.words.data() + i * dim;
    lanes.each(dim, [=](std::size_t j) {
      to[j] = from[j];
      from[j] = 0;
    });
  });
}

template <Space S>
void run(Exec<S> ex, AddRawSums const& a) {
  std::size_t const dim = a.into.columns(), n = a.words.size() / dim;
  GPUPS_ASSERT(a.slots.empty() ? a.into.rows() >= n : a.slots.size() >= n);
  each_row(ex, n, [a, dim] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::int64_t const* const from = a.words.data() + i * dim;
    std::int64_t* const to = a.into.row(a.slots.empty() ? i : a.slots[i]);
    lanes.each(dim, [=](std::size_t j) {
      auto const sum = static_cast<std::uint64_t>(to[j]) + static_cast<std::uint64_t>(from[j]);
      to[j] = static_cast<std::int64_t>(sum);
    });
  });
}

GPUPS_KERNEL(extract_sums, ExtractSums)
GPUPS_KERNEL(add_raw_sums, AddRawSums)

}  // namespace gpups::kernels
