// SPDX-License-Identifier: Apache-2.0
#include "trainer/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/check.hpp"

namespace gpups::trainer {
namespace {

// The enumerator that stands beside a word. REQUIRES: it is there; the configuration was checked.
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
constexpr std::pair<char const*, Optimizer::Kind> kOptimizers[] = {
    {"sgd", Optimizer::Kind::kSgd},
    {"adagrad", Optimizer::Kind::kAdagrad},
    {"rowwise_adagrad", Optimizer::Kind::kRowwiseAdagrad}};
constexpr std::pair<char const*, Schedule::Kind> kSchedules[] = {
    {"constant", Schedule::Kind::kConstant}, {"linear", Schedule::Kind::kLinear}, {"cosine", Schedule::Kind::kCosine}};

}  // namespace

ModelOptions model_options(Config const& config, std::int64_t schedule_steps) {
  auto const& m = config.model;
  auto const& o = config.optimizer;
  ModelOptions options;
  options.name = m.name;
  options.dim = static_cast<std::size_t>(m.dim);
  options.loss = m.loss;
  options.negatives = static_cast<std::uint32_t>(m.negatives);
  options.sampling = m.sampling;
  options.l2 = static_cast<float>(m.l2);
  options.n3 = static_cast<float>(m.n3);
  options.seed = static_cast<std::uint64_t>(config.train.seed);
  options.initializer = {kind_of(m.init, kInitializers), static_cast<float>(m.init_scale)};
  options.optimizer = {.kind = kind_of(o.kind, kOptimizers),
                       .learning_rate = static_cast<float>(o.learning_rate),
                       .epsilon = static_cast<float>(o.epsilon),
                       .initial_accumulator = static_cast<float>(o.initial_accumulator),
                       .clip_norm = static_cast<float>(o.clip_norm)};
  options.schedule = {.kind = kind_of(o.schedule, kSchedules),
                      .warmup_steps = o.warmup_steps,
                      .total_steps = o.total_steps > 0 ? o.total_steps : schedule_steps,
                      .floor = static_cast<float>(o.floor)};
  return options;
}

Session open_session(Config const& config, Dataset const& data, Group const& group, std::int64_t schedule_steps) {
  auto model = make_model(model_options(config, schedule_steps), data.vocabulary());
  Store store(group, {.device = device_from(config.run.device, group.place().local_rank),
                      .threads = static_cast<int>(config.run.threads),
                      .seed = static_cast<std::uint64_t>(config.train.seed),
                      .wait_timeout_s = config.cluster.wait_timeout_s});
  for (TableOptions const& table : model->tables()) store.add_table(table);
  return {std::move(model), std::move(store)};
}

void wait_require_agreement(Store& store, Config const& config, std::uint64_t data_digest) {
  std::string mine = fmt::format("{:016x}", data_digest);
  std::size_t const digest_length = mine.size();
  for (auto const& [name, value] : settings_in_common(config)) mine += fmt::format("\n{} = {}", name, value);
  auto const all = store.wait_gather(mine);
  auto const differs = std::find_if(all.begin(), all.end(), [&](auto const& other) { return other != all[0]; });
  if (differs == all.end()) return;
  try {
    store.wait_barrier();  // till all know: who left before would be taken for the cause
  } catch (Error const&) {
  }
  bool const same_data = differs->substr(0, digest_length) == all[0].substr(0, digest_length);
  throw Error(fmt::format("rank {} has {} than rank 0 (they could not train together): give every rank the same {}",
                          differs - all.begin(), same_data ? "another configuration" : "other data",
                          same_data ? "configuration" : "files"));
}

}  // namespace gpups::trainer
