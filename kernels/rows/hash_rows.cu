// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/hash_rows.hpp"

#include <cstring>

#include "kernels/base/atomic.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/rows/row_lifecycle.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

GPUPS_FN inline std::uint64_t word_of(float value) {
  std::uint32_t word;
  memcpy(&word, &value, sizeof word);
  return word;
}

// Returns the hash of `n` numbers as floats. Each number is mixed with its column and the salt of the row, so that
// equal numbers in other columns, or in other rows, give other hashes.
template <class T>
GPUPS_FN inline std::uint64_t hash_numbers(NativeLanes lanes, T const* from, std::size_t n, std::uint64_t salt) {
  return mix(lanes.sum_words(
      n, [=](std::size_t j) { return mix(salt ^ (std::uint64_t{j} << 32 | word_of(to_float(from[j])))); }));
}

template <class T, Space S>
void hash(Exec<S> ex, HashRows const& h) {
  each_row(ex, h.rows, [h] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    auto const id = static_cast<std::uint32_t>(i);
    std::uint32_t const* const lifecycle = h.lifecycle.row(id);
    if (!exists(lifecycle[0])) return;
    std::uint64_t hash = mix(mix(h.seed + 1) ^ *h.keys.row(id));
    hash = mix(hash + (std::uint64_t{lifecycle[1]} << 32 | lifecycle[0]));
    hash ^= hash_numbers(lanes, h.values.as<T>().row(id), h.dim, mix(hash + 1));
    if (h.state_columns > 0) hash = mix(hash) ^ hash_numbers(lanes, h.state.row(id), h.state_columns, mix(hash + 2));
    if (!lanes.first()) return;
    atomic_add(&h.digest[0], mix(hash));
    atomic_add(&h.digest[1], 1);
  });
}

template <Space S>
void run(Exec<S> ex, HashRows const& h) {
  with_number(h.values.type, [&]<class T>() { hash<T>(ex, h); });
}

GPUPS_KERNEL(hash_rows, HashRows)

}  // namespace gpups::kernels
