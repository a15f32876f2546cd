// SPDX-License-Identifier: Apache-2.0
#include "trainer/config/table_settings.hpp"

#include <string>
#include <utility>

#include "kernels/base/check.hpp"

namespace gpups::trainer {
namespace {

// Returns the enumerator of a word. REQUIRES: `all` has the word, which the check of the configuration ensures.
template <class Kind, std::size_t N>
Kind kind_of(std::string const& word, std::pair<char const*, Kind> const (&all)[N]) {
  for (auto const& [name, kind] : all) {
    if (word == name) return kind;
  }
  GPUPS_ASSERT(false);
  return all[0].second;
}

constexpr std::pair<char const*, Initializer::Kind> kInitializers[] = {{"normal", Initializer::Kind::kNormal},
                                                                       {"uniform", Initializer::Kind::kUniform},
                                                                       {"constant", Initializer::Kind::kConstant}};
constexpr std::pair<char const*, DataType> kValues[] = {
    {"float32", DataType::kFloat}, {"bfloat16", DataType::kBFloat16}, {"float16", DataType::kHalf}};
constexpr std::pair<char const*, Optimizer::Kind> kOptimizers[] = {
    {"sgd", Optimizer::Kind::kSgd},
    {"adagrad", Optimizer::Kind::kAdagrad},
    {"rowwise_adagrad", Optimizer::Kind::kRowwiseAdagrad},
    {"adam", Optimizer::Kind::kAdam},
    {"lamb", Optimizer::Kind::kLamb},
    {"ftrl", Optimizer::Kind::kFtrl}};
constexpr std::pair<char const*, kernels::DenseOptimizer::Kind> kDenseOptimizers[] = {
    {"sgd", kernels::DenseOptimizer::Kind::kSgd},
    {"adagrad", kernels::DenseOptimizer::Kind::kAdagrad},
    {"adam", kernels::DenseOptimizer::Kind::kAdam},
    {"lamb", kernels::DenseOptimizer::Kind::kLamb},
    {"ftrl", kernels::DenseOptimizer::Kind::kFtrl}};
constexpr std::pair<char const*, RowCodec> kCodecs[] = {{"lossless", RowCodec::kLossless},
                                                        {"float16", RowCodec::kHalf},
                                                        {"bfloat16", RowCodec::kBFloat16},
                                                        {"int8", RowCodec::kInt8},
                                                        {"int4", RowCodec::kInt4}};
constexpr std::pair<char const*, WireFormat> kFormats[] = {{"lossless", WireFormat::kFloat},
                                                           {"float16", WireFormat::kHalf},
                                                           {"bfloat16", WireFormat::kBFloat16},
                                                           {"int8", WireFormat::kInt8}};
constexpr std::pair<char const*, Schedule::Kind> kSchedules[] = {
    {"constant", Schedule::Kind::kConstant}, {"linear", Schedule::Kind::kLinear}, {"cosine", Schedule::Kind::kCosine}};

}  // namespace

Initializer initializer(ModelConfig const& model) {
  return {kind_of(model.init, kInitializers), static_cast<float>(model.init_scale)};
}

DataType row_value_type(ModelConfig const& model) { return kind_of(model.value_type, kValues); }

Optimizer row_optimizer(OptimizerConfig const& o) {
  return {.kind = kind_of(o.kind, kOptimizers),
          .learning_rate = static_cast<float>(o.learning_rate),
          .epsilon = static_cast<float>(o.epsilon),
          .initial_accumulator = static_cast<float>(o.initial_accumulator),
          .l2 = static_cast<float>(o.l2),
          .clip_norm = static_cast<float>(o.clip_norm),
          .beta1 = static_cast<float>(o.beta1),
          .beta2 = static_cast<float>(o.beta2),
          .l1 = static_cast<float>(o.l1),
          .beta = static_cast<float>(o.beta)};
}

Optimizer::Kind optimizer_kind(std::string const& name) { return kind_of(name, kOptimizers); }

RowCompression row_compression(CompressionConfig const& t, std::size_t dim) {
  auto const top_k = static_cast<std::size_t>(t.top_k);
  return {.codec = kind_of(t.codec, kCodecs),
          .top_k = top_k < dim ? top_k : 0,  // narrower tables send all columns
          .filter = {.age_max = static_cast<std::uint32_t>(t.age_max),
                     .density = static_cast<float>(t.density),
                     .threshold_max = static_cast<float>(t.threshold_max)},
          .capacity_rows = static_cast<std::size_t>(t.capacity_rows)};
}

kernels::DenseOptimizer dense_optimizer(DenseConfig const& d) {
  return {.kind = kind_of(d.optimizer, kDenseOptimizers),
          .learning_rate = static_cast<float>(d.learning_rate),
          .momentum = static_cast<float>(d.momentum),
          .beta1 = static_cast<float>(d.beta1),
          .beta2 = static_cast<float>(d.beta2),
          .epsilon = static_cast<float>(d.epsilon),
          .initial_accumulator = static_cast<float>(d.initial_accumulator),
          .weight_decay = static_cast<float>(d.weight_decay),
          .l1 = static_cast<float>(d.l1),
          .l2 = static_cast<float>(d.l2),
          .beta = static_cast<float>(d.beta)};
}

DenseAllreduceOptions dense_allreduce_options(DenseConfig const& d) {
  if (d.compression == "none") return {};
  // Smaller layers send all elements: they have few bytes, and few elements to select from.
  return {.large_from = 4096,
          .top_k = TopKOptions{.density = d.density,
                               .initial_density = d.initial_density,
                               .warmup_steps = static_cast<std::uint64_t>(d.warmup_steps),
                               .momentum = d.momentum_correction ? static_cast<float>(d.momentum) : 0.0F,
                               .algorithm = d.algorithm,
                               .format = kind_of(d.codec, kFormats)}};
}

Schedule schedule(OptimizerConfig const& o, std::int64_t run_steps) {
  return {.kind = kind_of(o.schedule, kSchedules),
          .warmup_steps = o.warmup_steps,
          .total_steps = o.total_steps > 0 ? o.total_steps : run_steps,
          .min_factor = static_cast<float>(o.min_factor)};
}

TableOptions vector_table(Config const& config, std::string const& name, std::size_t dim, std::size_t rows,
                          std::int64_t run_steps) {
  return {.name = name,
          .dim = dim,
          .initializer = initializer(config.model),
          .optimizer = row_optimizer(config.optimizer),
          .schedule = schedule(config.optimizer, run_steps),
          .expected_rows = rows,
          .value_type = row_value_type(config.model)};
}

}  // namespace gpups::trainer
