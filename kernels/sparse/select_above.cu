// SPDX-License-Identifier: Apache-2.0
#include "kernels/sparse/select_above.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/codec/code.hpp"
#include "kernels/runtime/launch.hpp"
#include "kernels/runtime/read_back.hpp"
#ifdef __CUDACC__
#include "kernels/sparse/write_selected_device.hpp"
#else
#include "kernels/sparse/candidate_list.hpp"
#endif

namespace gpups::kernels {

struct SelectAboveCounted {
  SelectAbove keep;
  std::size_t* count;  // on the host
};

// Returns the bits of the smallest magnitude to select.
inline std::uint32_t least_bits(float bound) {
  std::uint32_t const bits = bound > 0 ? magnitude_bits(bound) : 0;
  return bits > 1 ? bits : 1;
}

#ifdef __CUDACC__
inline std::size_t select_above(DeviceExec ex, SelectAbove const& k) {
  Array<DeviceBound> const bound(k.values.device(), 1);
  DeviceBound* const to = bound.data();
  DeviceBound const value{least_bits(k.bound) - 1, 0};
  each(ex, 1, [=] GPUPS_FN(std::size_t) { *to = value; });
  View<float const> const x = sum_in_place(ex, k.values, k.residual);
  return wait_write_selected(ex, x, bound.data(), k.indices.size(), k.indices, k.kept, k.residual);
}
#else
inline std::size_t select_above(HostExec ex, SelectAbove const& k) {
  wait_for(ex, "waiting for a count");
  ResidualSum x(k.values, k.residual);
  std::uint32_t const least = least_bits(k.bound);
  std::size_t const room = k.indices.size();
  SelectedElements const out{k.indices, k.kept};
  CandidateList list({least, kBitsEnd, std::min(x.size(), room)}, x.size());
  if (list.fill(ex, x)) return write_selected(ex, list, x, {least - 1, room, false}, out);
  list.put_back(ex, x);
  return write_selected(ex, x, {least - 1, room, false}, out);
}
#endif

template <Space S>
void run(Exec<S> ex, SelectAboveCounted const& both) {
  SelectAbove const& k = both.keep;
  GPUPS_ASSERT(k.values.size() < 0xFFFFFFFF && k.bound == k.bound && k.kept.size() >= k.indices.size());
  GPUPS_ASSERT(k.residual.empty() || k.residual.size() == k.values.size());
  *both.count = select_above(ex, k);
}

template <Space S>
void run(Exec<S> ex, IndicesToBitmap const& m) {
  // The thread with the first index of a word computes the whole word.
  each(ex, m.bitmap.size(), [m] GPUPS_FN(std::size_t word) { m.bitmap[word] = 0; });
  each(ex, m.indices.size(), [m] GPUPS_FN(std::size_t i) {
    std::uint32_t const word = m.indices[i] / 32;
    if (i > 0 && m.indices[i - 1] / 32 == word) return;
    std::uint32_t bits = 0;
    for (std::size_t j = i; j < m.indices.size() && m.indices[j] / 32 == word; ++j) bits |= 1U << (m.indices[j] % 32);
    m.bitmap[word] = bits;
  });
}

template <Space S>
void run(Exec<S> ex, ScatterAdd const& a) {
  GPUPS_ASSERT(a.kept.size() >= a.indices.size());
  each(ex, a.indices.size(), [a] GPUPS_FN(std::size_t i) { a.into[a.indices[i]] += a.kept[i]; });
}

GPUPS_KERNEL(select_above_counted, SelectAboveCounted)
GPUPS_KERNEL(indices_to_bitmap, IndicesToBitmap)
GPUPS_KERNEL(scatter_add, ScatterAdd)

#ifndef __CUDACC__
std::size_t wait_select_above(Stream& stream, SelectAbove const& arguments) {
  std::size_t count = 0;
  select_above_counted(stream, {arguments, &count});
  return count;
}
#endif

}  // namespace gpups::kernels
