// SPDX-License-Identifier: Apache-2.0
// Truncates a list of elements to its k largest.
#pragma once

#include <cmath>

#include "kernels/base/assert.hpp"
#include "kernels/sparse/sum_streams.hpp"
#include "kernels/sparse/top_k.hpp"
#include "kernels/sparse/unit_values.hpp"

namespace gpups::comm {

// Keeps the `k` elements of largest magnitude. Adds the others to `residual`, which covers the range that begins at
// `first`, unless it is empty.
template <class T>
void truncate_to_k(Stream& stream, kernels::SumEntries<T>& list, std::size_t k, View<T> residual, std::uint64_t first) {
  std::size_t const count = list.indices.size();
  if (count <= k) return;
  Array<float> const magnitudes(Device::host(), count), kept_magnitudes(Device::host(), k);
  Array<std::uint32_t> kept(Device::host(), k);  // positions in the list, later indices
  for (std::size_t i = 0; i < count; ++i) magnitudes[i] = std::abs(static_cast<float>(list.values[i]));
  std::size_t const left =
      kernels::wait_top_k(stream, {.values = magnitudes, .k = k, .indices = kept, .kept = kept_magnitudes}).count;
  Array<T> values(Device::host(), left);
  std::size_t next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (next < left && kept[next] == i) {
      kept[next] = list.indices[i];
      values[next++] = list.values[i];
    } else if (!residual.empty()) {
      T& lost = residual[list.indices[i] - first];
      lost = kernels::plus(lost, list.values[i]);
    }
  }
  GPUPS_ASSERT(left == k);
  list.indices = std::move(kept);
  list.values = std::move(values);
}

}  // namespace gpups::comm
