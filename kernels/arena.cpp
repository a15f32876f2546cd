// SPDX-License-Identifier: Apache-2.0
#include "kernels/arena.hpp"

#include <tbb/blocked_range.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

namespace gpups::kernels {

struct Arena::Impl {
  tbb::task_arena arena;
  int threads;
};

Arena::Arena(int threads) {
  int const count = threads > 0 ? threads : tbb::info::default_concurrency();
  impl_.reset(new Impl{tbb::task_arena(count), count});
}
Arena::~Arena() = default;

int Arena::threads() const { return impl_->threads; }

void Arena::blocks(std::size_t blocks, FunctionRef<void(std::size_t)> body) {
  if (blocks <= 1 || impl_->threads == 1) {
    for (std::size_t b = 0; b < blocks; ++b) body(b);
    return;
  }
  impl_->arena.execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<std::size_t>(0, blocks, 1),
        [&](auto const& range) {
          for (std::size_t b = range.begin(); b != range.end(); ++b) body(b);
        },
        tbb::auto_partitioner{});
  });
}

}  // namespace gpups::kernels
