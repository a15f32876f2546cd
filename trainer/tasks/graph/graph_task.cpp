// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/graph/graph_task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "kernels/base/check.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/base/random.hpp"
#include "trainer/config/table_settings.hpp"
#include "trainer/tasks/common/nearest.hpp"
#include "trainer/tasks/graph/evaluate.hpp"
#include "trainer/tasks/graph/graph_kind.hpp"
#include "trainer/tasks/graph/reciprocal.hpp"

namespace gpups::trainer {
namespace {

// The purpose of random bits: the answer that is in a query's triple.
constexpr std::uint64_t kAnswerOfQuery = 0x616e73776572;  // "answer"

Metrics to_metrics(RankingMetrics const& metrics) {
  return {.json = to_json(metrics), .text = to_text(metrics), .quality = metrics.mrr};
}

// The names that are trained. placement: may be null.
Vocabulary vocabulary(Dataset const& data, bool reciprocal, Placement const* placement) {
  Vocabulary all = data.vocabulary();
  if (reciprocal) {
    std::vector<Key> const inverses = inverse_keys(data.relations, data.seen_relations);
    all.relations.insert(all.relations.end(), inverses.begin(), inverses.end());
  }
  if (placement == nullptr) return all;
  all.part_offsets.push_back(0);
  for (std::uint32_t part = 0; part < placement->parts(); ++part) {
    std::vector<Key> const keys = placement->keys(TableId{0}, part, part + 1);
    all.by_part.insert(all.by_part.end(), keys.begin(), keys.end());
    all.part_offsets.push_back(all.by_part.size());
  }
  return all;
}

// Returns the options of a model of this graph: there are no more negatives than entities.
GraphModelOptions options_for(Dataset const& data, Config const& config, std::int64_t schedule_steps) {
  GraphModelOptions options = graph_model_options(config, schedule_steps);
  options.negatives = static_cast<std::uint32_t>(std::min<std::size_t>(options.negatives, data.entities.size()));
  return options;
}

class GraphStep : public TaskStep {
 public:
  // gradients: reused in each step.
  GraphStep(GraphModel const& model, GraphEntries work, GraphGradients& gradients)
      : model_(model), work_(std::move(work)), gradients_(gradients) {}

  std::vector<TableBatch> tables() const override { return work_.tables(); }
  View<std::int64_t const> forward_backward(Stream& stream, PreparedBatch const& prepared,
                                            std::span<MatrixView<float const> const> rows) override {
    return model_.forward_backward(stream, work_, prepared, rows, gradients_);
  }
  std::vector<TableGradients> gradients() const override { return gradients_.tables(work_); }

 private:
  GraphModel const& model_;
  GraphEntries work_;
  GraphGradients& gradients_;
};

class GraphTask : public Task {
 public:
  GraphTask(GraphData const& data, Config const& config, TaskContext const& context)
      : data_(data.dataset()),
        queries_(data.queries()),
        seed_(static_cast<std::uint64_t>(config.train.seed)),
        reciprocal_(config.settings<GraphSettings>().reciprocal),
        model_(make_graph_model(options_for(data_, config, context.schedule_steps),
                                vocabulary(data_, reciprocal_, context.placement.get()))),
        options_(evaluate_options(config)) {}

  std::vector<TableOptions> tables() const override { return model_->tables(); }

  std::unique_ptr<TaskStep> prepare(Stream& stream, Batch const& batch) override {
    TripleBatch triples{.clock = batch.clock,
                        .epoch = batch.epoch,
                        .triples = {},
                        .sample_numbers = batch.sample_numbers,
                        .microbatches = batch.microbatches,
                        .batch_triples = batch.batch_samples};
    triples.triples.reserve(batch.samples.size());
    if (queries_ != nullptr) {
      RandomBits const random(seed_, kAnswerOfQuery, batch.epoch);
      for (std::uint64_t sample : batch.samples) queries_->add_to(triples, sample, random(sample));
    } else {
      for (std::uint64_t sample : batch.samples) triples.triples.push_back(data_.train[sample]);
      if (reciprocal_) add_reciprocals(triples, data_.seen_relations);
    }
    return std::make_unique<GraphStep>(*model_, model_->prepare(stream, triples), gradients_);
  }

  Metrics wait_evaluate(Stream& stream, Store& store, std::string_view split) override {
    if (!evaluator_) evaluator_.emplace(data_, *model_, options_);
    return to_metrics(evaluator_->wait_evaluate(stream, store, data_.split(split)));
  }

  std::string explain(std::string message) const override { return with_names(std::move(message), data_); }

 private:
  Dataset const& data_;
  QuerySet const* queries_;  // null: samples are triples
  std::uint64_t seed_;
  bool reciprocal_;
  std::unique_ptr<GraphModel> model_;
  EvaluateOptions options_;
  std::optional<Evaluator> evaluator_;  // created at the first evaluation, because it sorts all triples
  GraphGradients gradients_;
};

}  // namespace

GraphData::GraphData(Dataset dataset, bool by_query) : dataset_(std::move(dataset)), digest_(dataset_.digest()) {
  if (by_query) queries_.emplace(dataset_);
}

std::string GraphData::summary() const {
  return fmt::format("{}, {}; {} for training, {} for validation, {} for the test",
                     with_count(dataset_.entities.size(), "entity"), with_count(dataset_.relations.size(), "relation"),
                     with_count(dataset_.train.size(), "triple"), dataset_.valid.size(), dataset_.test.size());
}

nlohmann::json GraphData::counts() const {
  return {{"entities", dataset_.entities.size()}, {"relations", dataset_.relations.size()}};
}

SampleRows GraphData::sample_rows() const {
  Vocabulary names = dataset_.vocabulary();
  auto const entities = static_cast<std::uint32_t>(names.entities.size());
  SampleRows rows{.graph = {.rows = static_cast<std::uint32_t>(entities + names.relations.size())},
                  .tables = {{TableId{0}, std::move(names.entities)}, {TableId{1}, std::move(names.relations)}}};
  for (Triple const& triple : dataset_.train) {
    std::uint32_t const read[] = {triple.subject, triple.object, entities + triple.relation};
    rows.graph.add(read);
  }
  return rows;
}

MemoryPlan GraphData::memory_plan(Config const& config, Device device, StepSizes const& step) const {
  Dataset const& data = dataset_;
  std::size_t const of_relation = config.settings<GraphSettings>().reciprocal ? 2 : 1;
  std::size_t const copies = queries_ ? 1 : of_relation;  // of a sample, in a batch
  std::size_t const entities = data.entities.size(), relations = of_relation * data.relations.size();
  std::size_t const triples = data.train.size() + data.valid.size() + data.test.size();
  auto const model = make_graph_model(options_for(data, config, 1),
                                      vocabulary(data, config.settings<GraphSettings>().reciprocal, nullptr));
  auto const tables = model->tables();
  GraphModel::Sizes const sizes = model->sizes_of(copies * step.samples, step.microbatches);
  std::string const settings =
      takes_all(config.settings<GraphSettings>().sampling) ? "train.microbatches" : "model.negatives";

  std::size_t const more_answers = queries_ ? queries_->answers_count() / queries_->size() : 0;  // of a query
  MemoryPlan plan;
  plan.push_back({.what = "the data",
                  .bytes = data.entities.bytes() + data.relations.bytes() + triples * sizeof(Triple) +
                           (queries_ ? queries_->bytes() : 0),
                  .on_host = true,
                  .taken = true});
  add_placement(plan, config, data.train.size(), 3 * data.train.size(), entities + relations);
  std::size_t const lists = config.placement.initial == "graph" ? 3 : 2;  // of entities
  plan.push_back({.what = "keys of the vocabulary", .bytes = (lists * entities + relations) * sizeof(Key)});
  BatchPart const parts[] = {
      {sizes.entries, sizes.rows, tables[0], sizes.entry_bytes},
      {copies * step.samples, std::min(relations, copies * step.samples), tables[1],
       sizeof(Key) + sizeof(std::uint32_t) + sizes.sample_bytes + more_answers * sizeof(std::uint32_t)},
  };
  add_batches(plan, parts, step, device, settings);
  plan.push_back({"gradients and scores of a step", sizes.gradient_bytes, "train.batch_size or " + settings});
  if (!has("valid") && !has("test")) return plan;
  std::uint64_t const scores =
      score_bytes(entities, std::max(data.valid.size(), data.test.size()), evaluate_options(config), step.ranks);
  std::uint64_t const rows = entities * row_stride(tables[0].dim) + relations * row_stride(tables[1].dim);
  plan.push_back({"evaluation: all rows, and scores of queries", rows * sizeof(float) + scores, "eval.samples_max"});
  plan.push_back(
      {"evaluation: a look-up", std::min(kKeysAtOnce, entities) * row_stride(tables[0].dim) * sizeof(float)});
  // The filters of both directions, and the list in which facts are sorted.
  constexpr std::uint64_t kAnswer = 2 * (sizeof(std::uint64_t) + 2 * sizeof(std::uint32_t)) + 16;
  plan.push_back({.what = "evaluation: known answers", .bytes = triples * kAnswer, .on_host = true});
  return plan;
}

std::unique_ptr<Task> GraphData::make_task(Config const& config, TaskContext const& context) const {
  return std::make_unique<GraphTask>(*this, config, context);
}

GraphModelOptions graph_model_options(Config const& config, std::int64_t schedule_steps) {
  ModelConfig const& m = config.model;
  GraphSettings const& graph = config.settings<GraphSettings>();
  GraphModelOptions options;
  options.name = m.name;
  options.dim = static_cast<std::size_t>(m.dim);
  options.loss = graph.loss;
  options.temperature = static_cast<float>(graph.temperature);
  options.negatives = static_cast<std::uint32_t>(graph.negatives);
  options.sampling = graph.sampling;
  options.objects_only = graph.reciprocal;
  options.label_smoothing = static_cast<float>(graph.label_smoothing);
  options.entity_dropout = static_cast<float>(graph.entity_dropout);
  options.relation_dropout = static_cast<float>(graph.relation_dropout);
  options.negative_reuse = static_cast<std::uint32_t>(graph.negative_reuse);
  options.local_negatives = static_cast<float>(graph.local_negatives);
  options.l2 = static_cast<float>(graph.l2);
  options.n3 = static_cast<float>(graph.n3);
  options.norm = static_cast<int>(graph.norm);
  options.margin = static_cast<float>(graph.margin);
  options.seed = static_cast<std::uint64_t>(config.train.seed);
  options.initializer = initializer(m);
  options.value_type = row_value_type(m);
  options.optimizer = row_optimizer(config.optimizer);
  options.schedule = schedule(config.optimizer, schedule_steps);
  return options;
}

}  // namespace gpups::trainer
