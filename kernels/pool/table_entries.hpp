// SPDX-License-Identifier: Apache-2.0
// Sources for bodies that pool the entries of tables (see bags.hpp). They refer to the PooledTable and copy nothing of
// it, which leaves registers for rows on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/pool/bags.hpp"
#include "kernels/pool/pool.hpp"
#ifdef __CUDACC__
#include "kernels/index/probe.hpp"
#else
#include <algorithm>

#include "kernels/index/key_search_host.hpp"
#endif

namespace gpups::kernels {

// A source for entries with row numbers.
template <class T>
struct NumberedEntries {
  using Number = T;
  static constexpr bool kByKey = false;
  PooledTable const* table;

  GPUPS_ANY_FN std::size_t stride() const { return table->rows.stride; }
#ifdef __CUDACC__
  __device__ T const* row(std::uint32_t entry, bool has) const { return has ? row(entry) : nullptr; }
#endif
  GPUPS_ANY_FN T const* row(std::uint32_t entry) const {
    std::uint32_t const id = table->ids[table->positions.empty() ? entry : table->positions[entry]];
    return id == kNoRow ? nullptr : table->rows.as<T>().row(id);
  }
  GPUPS_FN FourValues absent(std::uint32_t, std::size_t) const { return {}; }
};

// A source for entries with keys. A key without a row reads as the initial value that the row would have.
template <class T>
struct KeyedEntries {
  using Number = T;
  static constexpr bool kByKey = true;
  PooledTable const* table;

  GPUPS_ANY_FN std::size_t stride() const { return table->rows.stride; }
#ifdef __CUDACC__
  // Four neighbouring threads call it together. `has`: this thread has an entry.
  __device__ T const* row(std::uint32_t entry, bool has) const {
    std::uint32_t const id = probe(FourThreads{}, table->index, has ? table->keys[entry] : Key{}, has);
    if (has && !table->found.empty()) table->found[entry] = id;
    return of_number(id);
  }
#else
  using Search = KeySearch;
  // Starts the search for the keys of `count` entries from `first` on. Their numbers are written to the ring ids[0 ..
  // mask].
  void begin(Search& search, std::uint32_t first, std::uint32_t count, std::uint32_t* ids, std::size_t mask) const {
    search.begin(table->index, table->keys.slice(first, count), ids, mask);
  }
  // Copies the found numbers to table->found, if that is not empty.
  void copy_found(std::uint32_t first, std::uint32_t count, std::uint32_t const* ids) const {
    if (!table->found.empty()) std::copy_n(ids, count, table->found.data() + first);
  }
#endif
  GPUPS_FN T const* of_number(std::uint32_t id) const {
    return id == kNoRow ? nullptr : table->rows.template as<T>().row(id);
  }
  // Returns the initial values of the columns 4 * quad .. 4 * quad + 3, rounded to type T.
  GPUPS_FN FourValues absent(std::uint32_t entry, std::size_t quad) const {
    FourValues q = initial_values(table->initializer, table->seed, table->keys[entry], quad);
    for (std::size_t k = 0; k < 4; ++k) {
      q.value[k] = 4 * quad + k < table->out.columns() ? to_float(round_to<T>(q.value[k])) : 0;
    }
    return q;
  }
};

// Calls f(source) with the source of a table whose values have type T.
template <class T, class F>
GPUPS_FN inline void with_entries(PooledTable const& table, F f) {
  if (table.keys.empty()) {
    f(NumberedEntries<T>{&table});
  } else {
    f(KeyedEntries<T>{&table});
  }
}

// Calls f(source) with the source of a table.
template <class F>
GPUPS_FN inline void with_source(PooledTable const& table, F f) {
  switch (table.rows.type) {
    case DataType::kFloat:
      return with_entries<float>(table, f);
    case DataType::kHalf:
      return with_entries<Half>(table, f);
    case DataType::kBFloat16:
      return with_entries<BFloat16>(table, f);
  }
}

}  // namespace gpups::kernels
