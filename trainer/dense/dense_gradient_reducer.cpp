// SPDX-License-Identifier: Apache-2.0
#include "trainer/dense/dense_gradient_reducer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/base/assert.hpp"
#include "kernels/dense/sum_parts.hpp"
#include "kernels/index/key_index.hpp"
#include "trainer/base/progress_reporter.hpp"

namespace gpups::trainer {

namespace {

std::string counted_sums(DenseAllreduceSummary::LayerSums const& part) {
  return fmt::format("dense layers: {} in {} per step", with_count(part.numbers, "number"),
                     with_count(part.sums, "allreduce"));
}

std::string explain_exact(DenseAllreduceSummary const& sums) {
  return fmt::format("{}, exact, in units of 2^{}: {}", counted_sums(sums.exact), sums.grid_log2,
                     sums.is_on_devices
                         ? "NCCL sums them on the GPUs"
                         : "each rank sums one slice and sends it to all ranks; short arrays are sent to "
                           "all ranks at once");
}

std::string explain_largest(DenseAllreduceSummary const& sums, int ranks) {
  TopKOptions const& options = *sums.top_k;
  bool const is_lossless = options.format == WireFormat::kFloat;
  return fmt::format(
      "{}, largest {:g} % of each rank's elements, sent as {}, algorithm {}{}: {}", counted_sums(sums.largest),
      100 * options.density, is_lossless ? "integers" : name_of(options.format), sums.by->name,
      options.algorithm == "auto" ? fmt::format(" (\"auto\" for {} ranks)", ranks) : "", sums.by->description);
}

}  // namespace

std::vector<std::string> explain(DenseAllreduceSummary const& sums, int ranks, DenseAllreduceTraffic const& sent) {
  std::vector<std::string> lines;
  if (ranks < 2) return lines;
  if (sums.largest.sums > 0) lines.push_back(explain_largest(sums, ranks));
  lines.push_back(explain_exact(sums));
  if (sums.largest.sums == 0 && sent.steps > 0) {
    double const numbers = static_cast<double>(sums.exact.numbers) * static_cast<double>(sent.steps) * ranks;
    lines.back() += fmt::format("; a rank sends {:.2f} bytes per number", static_cast<double>(sent.bytes) / numbers);
  }
  return lines;
}

namespace {

template <class T>
void fill(Stream& stream, View<T> values, unsigned char byte) {
  memory::fill_bytes(stream, values.data(), byte, values.size() * sizeof(T));
}

}  // namespace

DenseGradientReducer::DenseGradientReducer(Group const& group, Parameters const& parameters,
                                           MatrixView<float const> gradients, int grid_log2,
                                           DenseAllreduceOptions const& allreduce)
    : group_(group),
      parameters_(parameters),
      gradients_(gradients),
      grid_log2_(grid_log2),
      top_k_(allreduce.top_k),
      momentum_(allreduce.top_k && allreduce.top_k->momentum != 0),
      sums_on_devices_(group.sums_on_devices(gradients.device())),
      is_one_sum_(!allreduce.top_k && sums_on_devices_),
      sums_(gradients.device(), is_one_sum_ ? 0 : parameters.size()),
      bad_elements_(gradients.device(), parameters.all().size()) {
  auto const& all = parameters_.all();
  std::size_t joint_size = is_one_sum_ ? parameters.size() : 0;
  if (is_one_sum_) joint_.push_back({0, parameters.size(), 0, 0});
  for (std::size_t i = all.size(); i-- > 0;) {
    Parameter const& p = all[i];
    if (!is_one_sum_ && p.size() >= allreduce.large_from && large_.size() < kLargeMax) {
      auto& large = large_.emplace_back(LargeLayer{p, i});
      if (allreduce.top_k) large.top_k.emplace(group, p.size(), *allreduce.top_k);
      continue;
    }
    joint_numbers_ += p.rows * p.columns;
    if (is_one_sum_) continue;
    joint_.push_back({p.offset, p.size(), i, joint_size});
    joint_size += p.size();
  }
  joint_sums_ = Array<std::int64_t>(gradients.device(), joint_size + 1);
  Stream stream(gradients.device(), 1);
  fill(stream, sums_.view(), 0);  // padding stays zero
  stream.wait();
}

void DenseGradientReducer::begin_step(Stream& stream, std::size_t microbatches) {
  fill(stream, bad_elements_.view(), 0xFF);  // kNoRow
  microbatches_ = microbatches;
  next_ = 0;
  for (LargeLayer& large : large_) large.missing = microbatches;
}

// The thread that finds a sum ready starts it, and then the sums that become ready meanwhile. Other threads return
// without waiting for it.
void DenseGradientReducer::mark_ready(Stream& stream, Parameter const& parameter) {
  std::unique_lock lock(mutex_);
  for (LargeLayer& large : large_) {
    if (large.parameter.offset == parameter.offset) --large.missing;
  }
  if (beginning_) return;
  beginning_ = true;
  while (next_ < large_.size() && large_[next_].missing == 0) {
    LargeLayer& large = large_[next_++];
    lock.unlock();
    begin(stream, large);
    lock.lock();
  }
  beginning_ = false;
}

void DenseGradientReducer::begin(Stream& stream, LargeLayer& large) {
  View<std::int64_t> const sums = sums_of(large.parameter);
  sum_microbatches(stream, large.parameter.offset, large.number, sums);
  if (!large.top_k) {
    large.request = group_.begin_allreduce(stream, sums);
    return;
  }
  // An invalid sum would corrupt the residual, so zeros are sent. The allreduce of small layers reports the error to
  // all ranks.
  if (to_host(stream, bad_elements_.view().slice(large.number, 1))[0] != kernels::kNoRow) fill(stream, sums, 0);
  if (auto const rejected = large.top_k->begin_checked(stream, View<std::int64_t const>(sums))) {
    std::vector<std::uint32_t> const at{static_cast<std::uint32_t>(*rejected)};
    copy<std::uint32_t>(stream, bad_elements_.view().slice(large.number, 1), View<std::uint32_t const>(at));
    stream.wait();  // the copy reads a local vector
  }
}

void DenseGradientReducer::sum_microbatches(Stream& stream, std::size_t offset, std::size_t number,
                                            View<std::int64_t> sums) {
  kernels::sum_parts(stream, {.parts = {gradients_.data() + offset, microbatches_, sums.size(), gradients_.stride(),
                                        gradients_.device()},
                              .grid_log2 = grid_log2_,
                              .sums = sums,
                              .bad_element = bad_elements_.view().slice(number, 1)});
}

void DenseGradientReducer::begin_remaining(Stream& stream) {
  while (next_ < large_.size()) begin(stream, large_[next_++]);
  for (JointSum const& one : joint_) {
    sum_microbatches(stream, one.offset, one.number, joint_sums_.view().slice(one.at, one.size));
  }
  kernels::mark_bad(stream,
                    {.bad_elements = bad_elements_, .mark = joint_sums_.view().slice(joint_sums_.size() - 1, 1)});
  joint_request_ = group_.begin_allreduce(stream, joint_sums_.view());
}

std::uint32_t DenseGradientReducer::wait_bad_element(Stream& stream) const {
  auto const bad_elements = to_host(stream, bad_elements_.view());
  for (std::size_t i = 0; i < bad_elements.size(); ++i) {
    if (bad_elements[i] == kernels::kNoRow) continue;
    return static_cast<std::uint32_t>(is_one_sum_ ? 0 : parameters_.all()[i].offset) + bad_elements[i];
  }
  return kernels::kNoRow;
}

std::int64_t DenseGradientReducer::wait(Stream& stream) {
  for (LargeLayer& large : large_) {
    if (large.top_k) {
      large.top_k->wait(stream, sums_of(large.parameter));
    } else {
      group_.wait_allreduce(stream, large.request);
    }
  }
  group_.wait_allreduce(stream, joint_request_);
  for (JointSum const& one : joint_) {
    if (is_one_sum_) break;  // sums() has them already
    copy<std::int64_t>(stream, sums_.view().slice(one.offset, one.size), joint_sums_.view().slice(one.at, one.size));
  }
  return to_host(stream, joint_sums_.view().slice(joint_sums_.size() - 1, 1))[0];
}

DenseAllreduceSummary DenseGradientReducer::allreduce_summary() const {
  DenseAllreduceSummary all{.grid_log2 = grid_log2_, .is_on_devices = sums_on_devices_, .top_k = top_k_};
  all.exact = {.sums = 1, .numbers = joint_numbers_};
  for (LargeLayer const& large : large_) {
    DenseAllreduceSummary::LayerSums& part = large.top_k ? all.largest : all.exact;
    ++part.sums;
    part.numbers += large.parameter.rows * large.parameter.columns;
    if (large.top_k) all.by = &large.top_k->algorithm();
  }
  return all;
}

bool DenseGradientReducer::has_momentum(Parameter const& parameter) const {
  return momentum_ && std::any_of(large_.begin(), large_.end(),
                                  [&](LargeLayer const& large) { return large.parameter.offset == parameter.offset; });
}

std::vector<DenseGradientReducer::Residuals> DenseGradientReducer::wait_save(Stream& stream) const {
  std::vector<Residuals> all;
  for (LargeLayer const& large : large_) {
    if (large.top_k) all.push_back({large.parameter.name, large.top_k->wait_save_all(stream)});
  }
  return all;
}

std::vector<std::string> DenseGradientReducer::parameters_with_residuals() const {
  std::vector<std::string> names;
  for (LargeLayer const& large : large_) {
    if (large.top_k) names.push_back(large.parameter.name);
  }
  return names;
}

void DenseGradientReducer::restore(Residuals const& residuals) {
  auto const at = std::find_if(large_.begin(), large_.end(),
                               [&](LargeLayer const& large) { return large.parameter.name == residuals.parameter; });
  GPUPS_ASSERT(at != large_.end() && at->top_k);
  at->top_k->restore(residuals.of_ranks);
}

std::vector<MemoryPlanLine> DenseGradientReducer::memory_plan(Parameters const& parameters,
                                                              DenseAllreduceOptions const& allreduce) {
  auto const& all = parameters.all();
  std::uint64_t large = 0, small = 1, count = 0;
  for (std::size_t i = all.size(); i-- > 0;) {
    bool const is_large = all[i].size() >= allreduce.large_from && count < kLargeMax;
    count += is_large ? 1 : 0;
    (is_large ? large : small) += all[i].size();
  }
  bool const momentum = allreduce.top_k && allreduce.top_k->momentum != 0;
  std::vector<MemoryPlanLine> lines{
      {"dense layers: sums", (parameters.size() + small) * sizeof(std::int64_t) + all.size() * sizeof(std::uint32_t)}};
  if (allreduce.top_k && large > 0) {
    lines.push_back({"dense layers: residuals of gradients, on the host",
                     large * (sizeof(std::int64_t) + (momentum ? sizeof(float) : 0))});
  }
  return lines;
}

std::vector<MemoryPlanLine> DenseGradientReducer::memory_plan() const {
  std::uint64_t residuals = 0;
  for (LargeLayer const& large : large_) {
    if (large.top_k) residuals += large.parameter.size() * (sizeof(std::int64_t) + (momentum_ ? sizeof(float) : 0));
  }
  std::vector<MemoryPlanLine> lines{
      {"dense layers: sums", sums_.bytes() + joint_sums_.bytes() + bad_elements_.bytes()}};
  if (residuals > 0) lines.push_back({"dense layers: residuals of gradients, on the host", residuals});
  return lines;
}

}  // namespace gpups::trainer
