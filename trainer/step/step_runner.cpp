// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/step_runner.hpp"

#include <numeric>
#include <utility>

#include "kernels/runtime/host_reads.hpp"

namespace gpups::trainer {

StepRunner::StepRunner(Store& store, Task& task, StageTimes& times)
    : store_(store), task_(task), times_(times), stream_(store.make_stream()) {}

void StepRunner::wait_ready(PreparedStep const& step) {
  StageTimes::StageTimer const range(times_, Stage::kWaitReady);
  step.samples > 0 ? store_.wait_ready(step.prepared) : store_.wait_applied();
}

std::int64_t StepRunner::run(PreparedStep step_now, std::uint32_t signal) {
  last_ = std::move(step_now);  // wait_ready() has waited for the end of the previous step
  PreparedStep const& step = last_;
  kernels::NvtxRange const range("step");
  View<std::int64_t const> losses;
  if (step.samples > 0) {
    stream_.after(step.ready);
    reserve(step);
    {
      StageTimes::StageTimer const part(times_, Stage::kPull);
      store_.pull(stream_, step.prepared, views_);
    }
    {
      StageTimes::StageTimer const part(times_, Stage::kForwardBackward);
      losses = step.work->forward_backward(stream_, step.prepared, const_views_);
    }
    {
      StageTimes::StageTimer const part(times_, Stage::kPush);
      store_.push(stream_, step.prepared, step.work->gradients());
    }
  }
  DenseLayers* const dense = task_.dense();
  if (dense != nullptr) {
    StageTimes::StageTimer const part(times_, Stage::kBeginAllreduce);
    dense->begin_allreduce(stream_, step.microbatches);
  }
  {
    StageTimes::StageTimer const part(times_, Stage::kAdvanceClock);
    store_.advance_clock(signal);
  }
  std::int64_t const loss = wait_loss(step, losses);
  if (dense != nullptr) {
    StageTimes::StageTimer const part(times_, Stage::kWaitApply);
    dense->wait_apply(stream_, step.clock, step.batch_samples);
  }
  return loss;
}

// The other ranks wait for what this rank sends in the round, so it has begun before.
std::int64_t StepRunner::wait_loss(PreparedStep const& step, View<std::int64_t const> losses) {
  if (losses.empty()) return 0;
  StageTimes::StageTimer const part(times_, Stage::kForwardBackward);
  kernels::HostReads reads(stream_);
  std::vector<std::int64_t> all;
  reads.add(losses, all);
  reads.wait();
  step.work->take_losses(stream_, all);
  return std::accumulate(all.begin(), all.end(), std::int64_t{0});
}

void StepRunner::reserve(PreparedStep const& step) {
  std::size_t const parts = step.prepared.parts();
  rows_.resize(parts);
  views_.resize(parts);
  const_views_.resize(parts);
  for (std::size_t p = 0; p < parts; ++p) {
    std::size_t const rows = step.prepared.rows(p);
    std::size_t const dim = store_.table(step.prepared.table(p)).dim;
    if (rows_[p].rows() < rows || rows_[p].columns() != dim) {  // the first batch may have no rows
      rows_[p] = Matrix<float>(stream_.device(), rows + rows / 4, dim);
      memory::fill_bytes(stream_, rows_[p].view().data(), 0, rows_[p].view().flat().bytes());  // the padding
    }
    views_[p] = rows_[p].view().slice(0, rows);
    const_views_[p] = views_[p];
  }
}

}  // namespace gpups::trainer
