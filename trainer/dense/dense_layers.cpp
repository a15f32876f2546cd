// SPDX-License-Identifier: Apache-2.0
#include "trainer/dense/dense_layers.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/base/philox.hpp"
#include "kernels/index/key_index.hpp"

namespace gpups::trainer {
namespace {

std::uint64_t hash_of(std::string const& text) { return XXH3_64bits(text.data(), text.size()); }

Array<float> zeros(Stream& stream, std::size_t size) {
  Array<float> array(stream.device(), size);
  memory::fill_bytes(stream, array.data(), 0, array.bytes());
  return array;
}

std::uint32_t wait_first_bad_element(Stream& stream, View<std::uint32_t const> bad_element) {
  return to_host(stream, bad_element)[0];
}

// Returns the offsets of all parameters, and the end of the last one.
std::vector<std::size_t> begins_of(Parameters const& parameters) {
  std::vector<std::size_t> begins;
  for (Parameter const& p : parameters.all()) begins.push_back(p.offset);
  begins.push_back(parameters.size());
  return begins;
}

Array<std::uint32_t> no_bad_element(Stream& stream) {
  Array<std::uint32_t> bad_element(stream.device(), 1);
  memory::fill_bytes(stream, bad_element.data(), 0xFF, bad_element.bytes());  // kNoRow
  return bad_element;
}

// Returns the elements of one parameter from the array of all parameters.
std::vector<float> without_padding(Parameter const& p, std::vector<float> const& all) {
  std::vector<float> numbers(p.rows * p.columns);
  for (std::size_t i = 0; i < p.rows; ++i) {
    std::copy_n(all.data() + p.offset + i * row_stride(p.columns), p.columns, numbers.data() + i * p.columns);
  }
  return numbers;
}

std::string blob_name(Parameter const& p, char const* part) { return fmt::format("dense/{}/{}", p.name, part); }
// Returns the name of a rank's residual of a parameter's gradients. Residuals are saved in the order of ranks.
std::string residual_name(std::string const& parameter, std::size_t rank) {
  return fmt::format("dense/{}/residual/{}", parameter, rank);
}

}  // namespace

DenseLayers::DenseLayers(Group const& group, Device device, Parameters parameters, std::size_t microbatches,
                         DenseOptions const& options)
    : group_(group), parameters_(std::move(parameters)), options_(options) {
  Stream stream(device, 1);
  std::size_t const size = parameters_.size();
  values_ = zeros(stream, size);
  first_ = zeros(stream, has_first(options.optimizer) ? size : 0);
  second_ = zeros(stream, has_second(options.optimizer) ? size : 0);
  gradients_ = zeros(stream, microbatches * stride());
  sums_ = std::make_unique<DenseGradientReducer>(
      group, parameters_, MatrixView<float const>{gradients_.data(), microbatches, size, stride(), device},
      options.grid_log2, options.allreduce);
  if (options.optimizer.kind == kernels::DenseOptimizer::Kind::kLamb) {
    units_ = kernels::DenseUnits(stream, begins_of(parameters_));
  }
  kernels::init_dense_state(stream, {.optimizer = options.optimizer, .first = first_, .second = second_});
  initialize(stream);
  stream.wait();
}

// An initial value depends only on the seed, the parameter's name, and the row and column.
void DenseLayers::initialize(Stream& stream) {
  std::vector<float> values(parameters_.size());
  for (Parameter const& p : parameters_.all()) {
    auto const key = kernels::philox_key(options_.seed ^ hash_of(p.name));
    for (std::size_t i = 0; i < p.rows; ++i) {
      for (std::size_t j = 0; j < p.columns; ++j) {
        auto const random =
            kernels::philox(key, {{static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(j), 0, 0}});
        values[p.offset + i * row_stride(p.columns) + j] =
            p.begin + p.scale * (2 * kernels::uniform01(random.word[0]) - 1);
      }
    }
  }
  copy<float>(stream, values_, View<float const>(values));
  stream.wait();  // the copy reads a local vector
}

void DenseLayers::begin_step(Stream& stream, std::size_t microbatches) {
  sums_->begin_step(stream, microbatches);
  stepping_ = true;
}

LayerGradients DenseLayers::layer_gradients(std::size_t i) {
  return {gradient(i), [this](Stream& stream, Parameter const& p) { sums_->mark_ready(stream, p); }};
}

void DenseLayers::begin_allreduce(Stream& stream, std::size_t microbatches) {
  if (!std::exchange(stepping_, false)) sums_->begin_step(stream, microbatches);
  sums_->begin_remaining(stream);
}

float DenseLayers::rate(Clock clock) const {
  return options_.optimizer.learning_rate * learning_rate_factor(options_.schedule, clock);
}

void DenseLayers::wait_apply(Stream& stream, Clock clock, std::size_t samples) {
  std::int64_t const bad_elements = sums_->wait(stream);
  std::uint32_t const mine = bad_elements == 0 ? kernels::kNoRow : sums_->wait_bad_element(stream);
  GPUPS_REQUIRE(
      bad_elements == 0,
      "the gradient of {} is not finite or too large at step {} (dense layers have not changed, but rows have, so "
      "training cannot continue): check the data, or start again with lower learning rates",
      mine == kernels::kNoRow ? std::string("a dense layer on another rank") : name_of(mine), number(clock));
  if (!sums_->corrects_momentum()) return update(stream, clock, samples, {0, parameters_.size(), options_.optimizer});
  for (Parameter const& p : parameters_.all()) {
    ParameterRange range{p.offset, p.padded_size(), options_.optimizer};
    if (sums_->has_momentum(p)) range.optimizer.momentum = 0;
    update(stream, clock, samples, range);
  }
}

void DenseLayers::update(Stream& stream, Clock clock, std::size_t samples, ParameterRange const& range) {
  auto const part = [&range](auto const& all) { return all.empty() ? all : all.slice(range.first, range.size); };
  auto const bad_element = no_bad_element(stream);
  kernels::update_dense(stream, {.sums = part(sums_->sums()),
                                 .grid_log2 = options_.grid_log2,
                                 .scale = 1.0 / static_cast<double>(std::max<std::size_t>(samples, 1)),
                                 .optimizer = range.optimizer,
                                 .rate = rate(clock),
                                 .rate_before = number(clock) > 0 ? rate(Clock{number(clock) - 1}) : 0.0F,
                                 .step = number(clock) + 1,
                                 .values = part(values_.view()),
                                 .first = has_first(range.optimizer) ? part(first_.view()) : View<float>{},
                                 .second = part(second_.view()),
                                 .bad_element = bad_element,
                                 .units = units_.ref()});
  std::uint32_t const at = wait_first_bad_element(stream, bad_element.view());
  GPUPS_REQUIRE(at == kernels::kNoRow,
                "the update of {} at step {} is not finite (training cannot continue): restore a checkpoint and lower "
                "dense.learning_rate",
                name_of(static_cast<std::uint32_t>(range.first) + at), number(clock));
}

std::string DenseLayers::name_of(std::uint32_t number) const {
  auto const& all = parameters_.all();
  auto const after = std::find_if(all.begin(), all.end(), [number](auto const& p) { return p.offset > number; });
  GPUPS_ASSERT(after != all.begin());
  Parameter const& p = *std::prev(after);
  std::size_t const place = number - p.offset, stride = row_stride(p.columns);
  return fmt::format("number {} of {}", place / stride * p.columns + place % stride, p.name);
}

std::vector<DenseLayers::NamedArray> DenseLayers::parts() const {
  std::vector<NamedArray> parts{{"values", values_}};
  if (!first_.empty()) parts.push_back({"first", first_});
  if (!second_.empty()) parts.push_back({"second", second_});
  return parts;
}

std::uint64_t DenseLayers::wait_hash(Stream& stream) const {
  std::uint64_t hash = 0;
  for (Blob const& blob : wait_parameters(stream))
    hash = XXH3_64bits_withSeed(blob.bytes.data(), blob.bytes.size(), hash);
  return hash;
}

std::vector<Blob> DenseLayers::wait_save(Stream& stream) const {
  std::vector<Blob> blobs = wait_parameters(stream);
  for (auto& [parameter, of_ranks] : sums_->wait_save(stream)) {
    for (std::size_t r = 0; r < of_ranks.size(); ++r) {
      blobs.push_back({residual_name(parameter, r), std::move(of_ranks[r])});
    }
  }
  return blobs;
}

std::vector<Blob> DenseLayers::wait_parameters(Stream& stream) const {
  std::vector<Blob> blobs;
  for (auto const& [name, numbers] : parts()) {
    auto const host = to_host(stream, numbers);
    for (Parameter const& p : parameters_.all()) {
      std::vector<float> const mine = without_padding(p, host);
      blobs.push_back(
          {blob_name(p, name), std::string(reinterpret_cast<char const*>(mine.data()), mine.size() * sizeof(float))});
    }
  }
  return blobs;
}

void DenseLayers::wait_restore(Stream& stream, std::span<Blob const> blobs) {
  for (auto const& [name, numbers] : parts()) {
    std::vector<float> host(parameters_.size());
    for (Parameter const& p : parameters_.all()) {
      std::string const wanted = blob_name(p, name);
      auto const found = std::find_if(blobs.begin(), blobs.end(), [&](auto const& b) { return b.name == wanted; });
      GPUPS_REQUIRE(found != blobs.end() && found->bytes.size() == p.rows * p.columns * sizeof(float),
                    "the checkpoint has no {} of {} numbers (its model has other layers): use the configuration of "
                    "the run that saved it",
                    wanted, p.rows * p.columns);
      for (std::size_t i = 0; i < p.rows; ++i) {
        std::memcpy(host.data() + p.offset + i * row_stride(p.columns),
                    found->bytes.data() + i * p.columns * sizeof(float), p.columns * sizeof(float));
      }
    }
    copy<float>(stream, numbers, View<float const>(host));
    stream.wait();  // the copy reads a local vector
  }
  restore_residuals(blobs);
}

void DenseLayers::restore_residuals(std::span<Blob const> blobs) {
  for (std::string const& parameter : sums_->parameters_with_residuals()) {
    DenseGradientReducer::Residuals residuals{parameter, {}};
    auto& of_ranks = residuals.of_ranks;
    for (Blob const& blob : blobs) {
      if (blob.name == residual_name(parameter, of_ranks.size())) of_ranks.push_back(blob.bytes);
    }
    GPUPS_REQUIRE(!of_ranks.empty(),
                  "the checkpoint has no {} (its model has other layers, or its run did not compress their gradients): "
                  "use the configuration of the run that saved it",
                  residual_name(parameter, 0));
    sums_->restore(residuals);
  }
}

std::vector<float> DenseLayers::wait_numbers(Stream& stream, Parameter const& parameter) const {
  return without_padding(parameter, to_host(stream, values_.view()));
}

std::vector<MemoryPlanLine> DenseLayers::memory_plan(Parameters const& parameters, std::size_t microbatches,
                                                     DenseOptions const& options) {
  std::uint64_t const floats = parameters.size() * sizeof(float);
  std::uint64_t state = floats * ((has_first(options.optimizer) ? 1U : 0U) + (has_second(options.optimizer) ? 1U : 0U));
  if (options.optimizer.kind == kernels::DenseOptimizer::Kind::kLamb) {
    std::uint64_t const units = parameters.all().size(), unit_parts = parameters.size() / kernels::kDensePart + units;
    state += 3 * sizeof(float) * (units + 1 + unit_parts);
  }
  std::vector<MemoryPlanLine> plan{
      {"dense layers: values", floats},
      {"dense layers: gradients", microbatches * row_stride(parameters.size()) * sizeof(float)},
      {"dense layers: optimizer state", state}};
  for (MemoryPlanLine const& line : DenseGradientReducer::memory_plan(parameters, options.allreduce))
    plan.push_back(line);
  return plan;
}

std::vector<MemoryPlanLine> DenseLayers::memory_plan() const {
  std::vector<MemoryPlanLine> plan{
      {"dense layers: values", values_.bytes()},
      {"dense layers: gradients", gradients_.bytes()},
      {"dense layers: optimizer state", first_.bytes() + second_.bytes() + units_.bytes()}};
  for (MemoryPlanLine const& line : sums_->memory_plan()) plan.push_back(line);
  return plan;
}

}  // namespace gpups::trainer
