// SPDX-License-Identifier: Apache-2.0

#include "trainer/tasks/task.hpp"

#include <algorithm>
#include <memory>

#include "kernels/base/assert.hpp"
#include "trainer/tasks/click/click_data.hpp"
#include "trainer/tasks/click/model/click_models.hpp"
#include "trainer/tasks/graph/graph_task.hpp"
#include "trainer/tasks/graph/reader.hpp"
#include "trainer/tasks/interactions/interaction_data.hpp"
#include "trainer/tasks/nodes/node_data.hpp"
#include "trainer/tasks/ratings/factor_tables.hpp"
#include "trainer/tasks/ratings/rating_data.hpp"
#include "trainer/tasks/words/skip_gram_task.hpp"
#include "trainer/tasks/words/word_data.hpp"

namespace gpups::trainer {
namespace {

// A kind of task. To add one, add an entry to kinds().
struct TaskKind {
  std::vector<std::string> readers, models;
  std::unique_ptr<Data const> (*read)(Config const& config);
  ModelShape (*shape)(Config const& config);
};

ModelShape vector_shape(Config const& config) { return {.widest_row = static_cast<std::size_t>(config.model.dim)}; }

std::vector<TaskKind> const& kinds() {
  static std::vector<TaskKind> const all{
      {reader_names(), model_names(),
       [](Config const& config) -> std::unique_ptr<Data const> {
         return std::make_unique<GraphData>(read_dataset(config.data), config.model.sampling == "kvsall");
       },
       graph_shape},
      {{"clicks"}, click_model_names(), read_clicks, click_shape},
      {{"ratings"},
       rating_model_names(),
       read_rating_data,
       [](Config const& config) { return ModelShape{.widest_row = factor_dim(config.model)}; }},
      {{"interactions"}, recommender_model_names(), read_interaction_data, vector_shape},
      {{"text"}, skip_gram_model_names(), read_word_data, vector_shape},
      {{"edges"}, skip_gram_model_names(), read_node_data, vector_shape},
  };
  return all;
}

std::vector<std::string> joined(std::vector<std::string> TaskKind::*names) {
  std::vector<std::string> all;
  for (TaskKind const& kind : kinds()) {
    for (std::string const& name : kind.*names) {
      if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(name);
    }
  }
  return all;
}

TaskKind const& kind_of(std::string_view reader) {
  auto const reads = [reader](TaskKind const& kind) {
    return std::find(kind.readers.begin(), kind.readers.end(), reader) != kind.readers.end();
  };
  auto const kind = std::find_if(kinds().begin(), kinds().end(), reads);
  GPUPS_ASSERT(kind != kinds().end());  // the configuration was checked
  return *kind;
}

}  // namespace

std::shared_ptr<Placement const> Data::placement(Config const& config, std::uint32_t microbatches) const {
  if (config.placement.initial != "graph") return nullptr;
  PartitionOptions const options{.parts = microbatches,
                                 .seed = static_cast<std::uint64_t>(config.train.seed),
                                 .batch_samples = static_cast<double>(config.train.batch_size)};
  std::lock_guard const lock(placement_mutex_);
  if (placement_options_ != options) {
    placement_ = std::make_shared<Placement const>(sample_rows(), options);
    placement_options_ = options;
  }
  return placement_;
}

std::vector<std::string> all_reader_names() { return joined(&TaskKind::readers); }
std::vector<std::string> all_model_names() { return joined(&TaskKind::models); }
std::vector<std::string> model_names_for(std::string_view reader) { return kind_of(reader).models; }

ModelShape model_shape(Config const& config) { return kind_of(config.data.reader).shape(config); }

std::unique_ptr<Data const> read_data(Config const& config) { return kind_of(config.data.reader).read(config); }

}  // namespace gpups::trainer
