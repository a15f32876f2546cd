// SPDX-License-Identifier: Apache-2.0
#include "kernels/select_rows.hpp"

#include "kernels/assert.hpp"
#include "kernels/compact.hpp"
#include "kernels/launch.hpp"

namespace gpups::kernels {

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
      [s] GPUPS_FN(std::size_t i) { return *s.life.row(s.first + static_cast<std::uint32_t>(i)) != 0; },
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
