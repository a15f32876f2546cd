// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/task.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <string_view>

#include "kernels/base/check.hpp"
#include "trainer/config/fields.hpp"
#include "trainer/config/task_kind.hpp"

namespace gpups::trainer {

namespace {

namespace fs = std::filesystem;

// Throws Error if a file of held-out samples is missing, and those of training are not. key: that names it.
void require_held_out(Config const& config, std::string const& file, std::string_view key) {
  std::error_code unknown;
  fs::path const folder = config.data.folder, path = folder / file;
  auto const is_pattern = [](std::string const& name) { return name.find_first_of("*?") != name.npos; };
  if (file.empty() || is_pattern(file) || fs::exists(path, unknown)) return;
  if (!is_pattern(config.data.train) && !fs::exists(folder / config.data.train, unknown)) return;
  throw Error(
      fmt::format("{} does not exist ({} names it, and need not): check the path, or set {} = \"\" to have no "
                  "such samples",
                  path.string(), key, key));
}

// Throws Error if two settings name one pipe: the second reader would wait for its end forever.
void require_pipes_once(Config const& config) {
  struct Named {
    std::string key;
    struct stat facts;
  };
  std::vector<Named> pipes;
  auto const add = [&](char const* key, std::string const& file) {
    if (file.empty() || !is_used(config, key)) return;
    fs::path const path = fs::path(config.data.folder) / file;
    struct stat facts {};  // std::filesystem::equivalent() does not compare pipes
    if (::stat(path.c_str(), &facts) != 0 || !S_ISFIFO(facts.st_mode)) return;
    for (Named const& other : pipes) {
      GPUPS_REQUIRE(facts.st_dev != other.facts.st_dev || facts.st_ino != other.facts.st_ino,
                    "{} and {} are the same pipe, {} (it can be read once): write its text to a file", other.key, key,
                    path.string());
    }
    pipes.push_back({key, facts});
  };
  add("data.train", config.data.train);
  add("data.valid", config.data.valid);
  add("data.test", config.data.test);
}

}  // namespace

std::unique_ptr<Data const> read_data(Config const& config) {
  if (is_used(config, "data.valid")) require_held_out(config, config.data.valid, "data.valid");
  if (is_used(config, "data.test")) require_held_out(config, config.data.test, "data.test");
  require_pipes_once(config);
  return config.task.kind->read(config);
}

Config with_batch_size(Config config, Data const& data) {
  if (config.train.batch_size == 0) config.train.batch_size = static_cast<std::int64_t>(data.chosen_batch(config));
  return config;
}

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
