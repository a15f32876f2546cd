// SPDX-License-Identifier: Apache-2.0
#include "trainer/dense_layers.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/check.hpp"
#include "kernels/dense/sum_parts.hpp"
#include "kernels/key_index.hpp"
#include "kernels/philox.hpp"

namespace gpups::trainer {
namespace {

std::uint64_t hash_of(std::string const& text) { return XXH3_64bits(text.data(), text.size()); }

Array<float> zeros(Stream& stream, std::size_t size) {
  Array<float> array(stream.device(), size);
  memory::fill_bytes(stream, array.data(), 0, array.bytes());
  return array;
}

std::uint32_t wait_first_fault(Stream& stream, View<std::uint32_t const> fault) { return to_host(stream, fault)[0]; }

// Where parameters begin, and where the last one ends.
std::vector<std::size_t> begins_of(Parameters const& parameters) {
  std::vector<std::size_t> begins;
  for (Parameter const& p : parameters.all()) begins.push_back(p.offset);
  begins.push_back(parameters.size());
  return begins;
}

Array<std::uint32_t> no_fault(Stream& stream) {
  Array<std::uint32_t> fault(stream.device(), 1);
  memory::fill_bytes(stream, fault.data(), 0xFF, fault.bytes());  // kNoRow
  return fault;
}

// A parameter's numbers in an array of all.
std::vector<float> without_padding(Parameter const& p, std::vector<float> const& all) {
  std::vector<float> numbers(p.rows * p.columns);
  for (std::size_t i = 0; i < p.rows; ++i) {
    std::copy_n(all.data() + p.offset + i * row_stride(p.columns), p.columns, numbers.data() + i * p.columns);
  }
  return numbers;
}

std::string blob_name(Parameter const& p, char const* part) { return fmt::format("dense/{}/{}", p.name, part); }

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
  sums_ = Array<std::int64_t>(device, size + 1);
  if (options.optimizer.kind == kernels::DenseOptimizer::Kind::kLamb) {
    units_ = kernels::DenseUnits(stream, begins_of(parameters_));
  }
  kernels::init_dense_state(stream, {.optimizer = options.optimizer, .first = first_, .second = second_});
  initialize(stream);
  stream.wait();
}

// A number's value depends on the seed, its parameter's name and its place alone.
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
  stream.wait();  // the vector goes
}

void DenseLayers::begin_sum(Stream& stream, std::size_t microbatches) {
  std::size_t const size = parameters_.size();
  auto const fault = no_fault(stream);
  kernels::sum_parts(stream, {.parts = {gradients_.data(), microbatches, size, stride(), stream.device()},
                              .grid_log2 = options_.grid_log2,
                              .sums = sums_.view().slice(0, size),
                              .fault = fault});
  fault_ = wait_first_fault(stream, fault.view());
  std::vector<std::int64_t> const faults{fault_ == kernels::kNoRow ? 0 : 1};
  copy<std::int64_t>(stream, sums_.view().slice(size, 1), View<std::int64_t const>(faults));
  stream.wait();  // the vector goes
  reduction_ = group_.begin_allreduce(stream, sums_);
}

float DenseLayers::rate(Clock clock) const {
  return options_.optimizer.learning_rate * learning_rate_factor(options_.schedule, clock);
}

void DenseLayers::wait_apply(Stream& stream, Clock clock, std::size_t samples) {
  group_.wait_allreduce(stream, reduction_);
  std::size_t const size = parameters_.size();
  std::int64_t const faults = to_host(stream, sums_.view().slice(size, 1))[0];
  GPUPS_REQUIRE(
      faults == 0,
      "the gradient of {} is not finite or too large at step {} (dense layers are as they were, but rows have "
      "changed, so training cannot go on): restore a checkpoint, check the data and lower the learning rates",
      fault_ == kernels::kNoRow ? std::string("a dense layer on another rank") : name_of(fault_), number(clock));
  auto const fault = no_fault(stream);
  kernels::update_dense(stream, {.sums = sums_.view().slice(0, size),
                                 .grid_log2 = options_.grid_log2,
                                 .scale = 1.0 / static_cast<double>(std::max<std::size_t>(samples, 1)),
                                 .optimizer = options_.optimizer,
                                 .rate = rate(clock),
                                 .rate_before = number(clock) > 0 ? rate(Clock{number(clock) - 1}) : 0.0F,
                                 .step = number(clock) + 1,
                                 .values = values_,
                                 .first = first_,
                                 .second = second_,
                                 .fault = fault,
                                 .units = units_.ref()});
  std::uint32_t const at = wait_first_fault(stream, fault.view());
  GPUPS_REQUIRE(at == kernels::kNoRow,
                "the update of {} at step {} is not finite (training cannot go on): restore a checkpoint, and lower "
                "dense.learning_rate",
                name_of(at), number(clock));
}

std::string DenseLayers::name_of(std::uint32_t number) const {
  auto const& all = parameters_.all();
  auto const after = std::find_if(all.begin(), all.end(), [number](auto const& p) { return p.offset > number; });
  GPUPS_ASSERT(after != all.begin());
  Parameter const& p = *std::prev(after);
  std::size_t const place = number - p.offset, stride = row_stride(p.columns);
  return fmt::format("number {} of {}", place / stride * p.columns + place % stride, p.name);
}

std::vector<DenseLayers::Part> DenseLayers::parts() const {
  std::vector<Part> parts{{"values", values_}};
  if (!first_.empty()) parts.push_back({"first", first_});
  if (!second_.empty()) parts.push_back({"second", second_});
  return parts;
}

std::uint64_t DenseLayers::wait_hash(Stream& stream) const {
  std::uint64_t hash = 0;
  for (Blob const& blob : wait_save(stream)) hash = XXH3_64bits_withSeed(blob.bytes.data(), blob.bytes.size(), hash);
  return hash;
}

std::vector<Blob> DenseLayers::wait_save(Stream& stream) const {
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
                    "the checkpoint has no {} of {} numbers (its model had other layers): use the configuration that "
                    "it was made with",
                    wanted, p.rows * p.columns);
      for (std::size_t i = 0; i < p.rows; ++i) {
        std::memcpy(host.data() + p.offset + i * row_stride(p.columns),
                    found->bytes.data() + i * p.columns * sizeof(float), p.columns * sizeof(float));
      }
    }
    copy<float>(stream, numbers, View<float const>(host));
    stream.wait();  // the vector goes
  }
}

std::vector<float> DenseLayers::wait_numbers(Stream& stream, Parameter const& parameter) const {
  return without_padding(parameter, to_host(stream, values_.view()));
}

std::vector<MemoryLine> DenseLayers::memory_plan() const {
  return {{"dense layers: values", values_.bytes()},
          {"dense layers: gradients", gradients_.bytes() + sums_.bytes()},
          {"dense layers: optimizer state", first_.bytes() + second_.bytes() + units_.bytes()}};
}

}  // namespace gpups::trainer
