// SPDX-License-Identifier: Apache-2.0
// Makes a list of elements short again.
#pragma once

#include <cmath>

#include "kernels/assert.hpp"
#include "kernels/wire/sum_streams.hpp"
#include "kernels/wire/top_k.hpp"
#include "kernels/wire/wrapped.hpp"

namespace gpups::comm {

// Leaves the `most` largest by magnitude; adds the others to the residual of the range that begins at `first`, if there
// is one.
template <class T>
void keep_largest(Stream& stream, kernels::EntriesOfSum<T>& list, std::size_t most, View<T> residual,
                  std::uint64_t first) {
  std::size_t const count = list.indices.size();
  if (count <= most) return;
  Array<float> const magnitudes(Device::host(), count), kept_magnitudes(Device::host(), most);
  Array<std::uint32_t> kept(Device::host(), most);  // places in the list, and then indices
  for (std::size_t i = 0; i < count; ++i) magnitudes[i] = std::abs(static_cast<float>(list.values[i]));
  std::size_t const left =
      kernels::wait_top_k(stream, {.values = magnitudes, .k = most, .indices = kept, .kept = kept_magnitudes}).count;
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
  GPUPS_ASSERT(left == most);
  list.indices = std::move(kept);
  list.values = std::move(values);
}

}  // namespace gpups::comm
