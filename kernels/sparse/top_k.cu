// SPDX-License-Identifier: Apache-2.0
#include "kernels/sparse/top_k.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"
#ifdef __CUDACC__
#include "kernels/sparse/top_k_device.hpp"
#else
#include "kernels/sparse/top_k_host.hpp"
#endif

namespace gpups::kernels {

struct TopKAndResult {
  TopK top;
  TopKResult* kept;  // on the host
};

template <Space S>
void run(Exec<S> ex, TopKAndResult const& both) {
  TopK const& t = both.top;
  [[maybe_unused]] std::size_t const most = t.k < t.values.size() ? t.k : t.values.size();
  GPUPS_ASSERT(t.values.size() < 0xFFFFFFFF && t.indices.size() >= most && t.kept.size() >= most);
  GPUPS_ASSERT(t.residual.empty() || t.residual.size() == t.values.size());
  *both.kept = top_k(ex, t);
}

GPUPS_KERNEL(top_k_and_result, TopKAndResult)

#ifndef __CUDACC__
TopKResult wait_top_k(Stream& stream, TopK const& arguments) {
  TopKResult kept{};
  top_k_and_result(stream, {arguments, &kept});
  return kept;
}
#endif

}  // namespace gpups::kernels
