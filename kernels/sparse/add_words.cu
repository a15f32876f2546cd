// SPDX-License-Identifier: Apache-2.0
#include "kernels/sparse/add_words.hpp"

#include "kernels/base/assert.hpp"
#include "kernels/runtime/launch.hpp"

namespace gpups::kernels {

template <Space S>
void run(Exec<S> ex, AddWords const& a) {
  GPUPS_ASSERT(a.into.size() == a.words.size());
  each(ex, a.into.size(), [a] GPUPS_FN(std::size_t i) {
    // Unsigned, because the sum may wrap and the overflow of signed integers is undefined.
    auto const sum = static_cast<std::uint64_t>(a.into[i]) + static_cast<std::uint64_t>(a.words[i]);
    a.into[i] = static_cast<std::int64_t>(sum);
  });
}

GPUPS_KERNEL(add_words, AddWords)

}  // namespace gpups::kernels
