// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/task.hpp"

#include "trainer/config/task_kind.hpp"

namespace gpups::trainer {

std::unique_ptr<Data const> read_data(Config const& config) { return config.task.kind->read(config); }

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

}  // namespace gpups::trainer
