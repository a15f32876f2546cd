// SPDX-License-Identifier: Apache-2.0
#include "trainer/step.hpp"

#include <utility>

#include "kernels/nvtx.hpp"

namespace gpups::trainer {

using kernels::NvtxRange;

Stepper::Stepper(Store& store, Model const& model) : store_(store), model_(model), stream_(store.make_stream()) {}

void Stepper::wait_ready(Step const& step) {
  NvtxRange const range("wait_ready");
  step.samples > 0 ? store_.wait_ready(step.prepared) : store_.wait_flush();
}

std::int64_t Stepper::run(Step step_now, std::uint32_t signal) {
  last_ = std::move(step_now);  // wait_ready has seen the end of the one before
  Step const& step = last_;
  NvtxRange const range("step");
  std::int64_t loss = 0;
  if (step.samples > 0) {
    reserve(step);
    {
      NvtxRange const part("pull");
      store_.pull(stream_, step.prepared, views_);
    }
    {
      NvtxRange const part("forward_backward");
      loss = model_.forward_backward(stream_, step.work, step.prepared, const_views_, gradients_);
    }
    {
      NvtxRange const part("push");
      store_.push(stream_, step.prepared, gradients_.tables(step.work));
    }
  }
  NvtxRange const part("advance_clock");
  store_.advance_clock(signal);
  return loss;
}

void Stepper::reserve(Step const& step) {
  std::size_t const parts = step.prepared.parts();
  rows_.resize(parts);
  views_.resize(parts);
  const_views_.resize(parts);
  for (std::size_t p = 0; p < parts; ++p) {
    std::size_t const rows = step.prepared.rows(p);
    if (rows_[p].rows() < rows) {
      rows_[p] = Matrix<float>(stream_.device(), rows + rows / 4, store_.table(step.prepared.table(p)).dim);
      memory::fill_bytes(stream_, rows_[p].view().data(), 0, rows_[p].view().flat().bytes());  // the padding
    }
    views_[p] = rows_[p].view().slice(0, rows);
    const_views_[p] = views_[p];
  }
}

}  // namespace gpups::trainer
