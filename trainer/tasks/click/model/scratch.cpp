// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/model/scratch.hpp"

#include <utility>

namespace gpups::trainer {

Scratch::Scratch(Stream& stream, ScratchPlan const& plan, std::size_t rows) : rows_(rows) {
  for (std::size_t columns : plan.columns()) {
    matrices_.emplace_back(stream.device(), rows, columns);
    auto const all = matrices_.back().view().flat();
    memory::fill_bytes(stream, all.data(), 0, all.bytes());
  }
  stream.wait();
}

std::unique_ptr<Scratch> ScratchPool::take(Stream& stream, std::size_t rows) {
  {
    std::lock_guard const lock(mutex_);
    while (!free_.empty()) {
      auto scratch = std::move(free_.back());
      free_.pop_back();
      if (scratch->rows() >= rows) return scratch;
    }
  }
  return std::make_unique<Scratch>(stream, plan_, rows);
}

void ScratchPool::give_back(std::unique_ptr<Scratch> scratch) {
  std::lock_guard const lock(mutex_);
  free_.push_back(std::move(scratch));
}

}  // namespace gpups::trainer
