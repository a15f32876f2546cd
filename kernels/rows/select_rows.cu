// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/select_rows.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/rows/row_lifecycle.hpp"
#include "kernels/runtime/compact.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

GPUPS_FN inline bool is_of_kind(std::uint32_t word, RowStatus kind) {
  if (kind == RowStatus::kExist) return exists(word);
  return kind == RowStatus::kWait ? waits(word) : word == 0;
}

struct SelectRowsCounted {
  SelectRows select;
  std::size_t* count;  // on the host
};

template <Space S>
void run(Exec<S> ex, SelectRowsCounted const& counted) {
  SelectRows const s = counted.select;
  GPUPS_ASSERT(s.first <= s.last && s.ids.size() >= s.last - s.first);
  *counted.count = wait_compact(
      ex, s.ids.device(), s.last - s.first,
      [s] GPUPS_FN(std::size_t i) {
        return is_of_kind(*s.lifecycle.row(s.first + static_cast<std::uint32_t>(i)), s.kind);
      },
      [s] GPUPS_FN(std::size_t i, std::uint32_t rank) { s.ids[rank] = s.first + static_cast<std::uint32_t>(i); });
}

GPUPS_KERNEL(select_rows_counted, SelectRowsCounted)

#ifndef __CUDACC__
std::size_t wait_select_rows(Stream& stream, SelectRows const& arguments) {
  std::size_t count = 0;
  select_rows_counted(stream, {arguments, &count});
  return count;
}
#endif

}  // namespace gpups::kernels
