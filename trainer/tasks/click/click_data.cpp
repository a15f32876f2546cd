// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/click/click_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/base/check.hpp"
#include "trainer/base/progress_reporter.hpp"
#include "trainer/base/random.hpp"
#include "trainer/input/input_file.hpp"
#include "trainer/input/named_files.hpp"
#include "trainer/tasks/click/binary_format.hpp"
#include "trainer/tasks/click/click_kind.hpp"
#include "trainer/tasks/click/click_tables.hpp"
#include "trainer/tasks/click/click_task.hpp"
#include "trainer/tasks/click/lost_digits.hpp"
#include "trainer/tasks/click/model/click_model.hpp"
#include "trainer/tasks/click/sample_storage.hpp"
#include "trainer/tasks/click/unknown_values.hpp"

namespace gpups::trainer {
namespace {

namespace fs = std::filesystem;

// Whether a file has the binary format, by its first bytes. Pipes, which can be read once, have text.
bool is_binary(fs::path const& path) {
  std::error_code unknown;  // a file that does not exist is reported when it is opened
  if (fs::is_other(path, unknown)) return false;
  char first[sizeof kMagic];
  return InputFile(path).read(first, sizeof first) == sizeof first && std::memcmp(first, kMagic, sizeof first) == 0;
}

// Removes the last samples from a split, as many as `share` of `all`, and returns them as another split. Returns
// nothing if that is less than one sample.
std::optional<Split> cut_off(Split& from, double share, std::uint64_t all) {
  auto const count = static_cast<std::uint64_t>(std::llround(share * static_cast<double>(all)));
  if (count == 0) return std::nullopt;
  from.count -= count;
  return Split{from.samples, from.first + from.count, count};
}

// Returns names as text: the first ten, if there are many.
std::string list_of(std::vector<std::string> const& names) {
  constexpr std::size_t kMost = 10;
  std::size_t const some = std::min(names.size(), kMost);
  return fmt::format("{}{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(some), ", "),
                     names.size() > some ? fmt::format(" and {} others", names.size() - some) : "");
}

// Adds a notice if cells of a category of several values have one value each. Reads samples until all such categories
// have others.
void say_if_single(Split const& split, std::vector<std::string>& notices) {
  using Kind = CategoryField::Kind;
  auto const& categories = split.samples.layout().categories;
  std::vector<std::size_t> single;
  for (std::size_t c = 0; c < categories.size(); ++c) {
    if (categories[c].kind != Kind::kOne) single.push_back(c);
  }
  SampleBatch batch;
  for (std::uint64_t begin = 0; begin < split.count && !single.empty(); begin += kSampleBlock) {
    split.samples.read(split.first + begin, std::min(kSampleBlock, split.count - begin), batch);
    std::erase_if(single, [&](std::size_t c) {
      for (std::size_t cell = c; cell + 1 < batch.offsets.size(); cell += categories.size()) {
        std::uint32_t const from = batch.offsets[cell], to = batch.offsets[cell + 1];
        if (to - from > 1) return true;
      }
      return false;
    });
  }
  if (single.empty()) return;
  std::vector<std::string> names;
  for (std::size_t const c : single) names.push_back(categories[c].name);
  notices.push_back(
      fmt::format("no cell of {} has several values, although data.multi_hot or data.weighted says so: values are "
                  "separated by '|', and everything else is one value",
                  list_of(names)));
}

// Adds a notice if all labels of a split are equal. Reads samples up to the first other label, in general a block.
void say_if_one_class(Split const& split, std::string_view name, std::vector<std::string>& notices) {
  SampleBatch batch;
  std::optional<float> first;
  for (std::uint64_t begin = 0; begin < split.count; begin += kSampleBlock) {
    split.samples.read(split.first + begin, std::min(kSampleBlock, split.count - begin), batch);
    if (!first) first = batch.labels.front();
    if (std::any_of(batch.labels.begin(), batch.labels.end(), [&](float label) { return label != *first; })) return;
  }
  if (!first || split.count < 2) return;
  notices.push_back(fmt::format("all {} for the {} have the label {}: {}", with_count(split.count, "sample"), name,
                                *first,
                                name == "training" ? "the model learns no difference between samples"
                                                   : "some metrics, such as the AUC, are undefined"));
}

// Adds a notice if the first samples have labels between 0 and 1: another column may have the labels.
void say_if_fractions(Split const& split, std::vector<std::string>& notices) {
  SampleBatch batch;
  split.samples.read(split.first, std::min(kSampleBlock, split.count), batch);
  auto const fraction =
      std::find_if(batch.labels.begin(), batch.labels.end(), [](float label) { return label > 0 && label < 1; });
  if (fraction == batch.labels.end()) return;
  notices.push_back(fmt::format(
      "labels are fractions, such as {}: if another column has the labels, data.columns names it first", *fraction));
}

// Compares the columns of a binary file, which are read by their places, with those of other files.
void compare_names(Samples const& samples, fs::path const& path, SameColumns& same, std::vector<std::string>& notices) {
  if (samples.names().empty()) {
    if (same.has_names()) say_no_names(path.string(), same.first_path(), notices);
    return;
  }
  TableLayout layout{.heading = true, .names = samples.names()};
  for (std::size_t i = 0; i < layout.names.size(); ++i) layout.columns.push_back(i);
  if (!same.empty() && !same.has_names()) return say_no_names(same.first_path(), path.string(), notices);
  GPUPS_REQUIRE(same.empty() || !same.is_reordered(layout),
                "{} has the label, numbers and categories {}, and {} has them in another order (they are read by their "
                "places): convert the text again with --columns, in the order of {}",
                path.string(), fmt::join(layout.names, ", "), same.first_path(), same.first_path());
  if (same.empty()) same.check(layout, path.string());
}

// Throws Error if the settings say how text is divided.
void require_no_text_settings(Config const& config) {
  TableSettings const &table = config.data.table, usual;
  char const* const key = !table.columns.empty()               ? "columns"
                          : table.heading != usual.heading     ? "heading"
                          : table.separator != usual.separator ? "separator"
                          : table.comment != usual.comment     ? "comment"
                                                               : nullptr;
  GPUPS_REQUIRE(key == nullptr,
                "data.{0} has no effect here (all files are binary, with the columns that they were converted with): "
                "remove it, or convert the text again with --{0}",
                key);
}

}  // namespace

void say_no_names(std::string_view path, std::string_view other, std::vector<std::string>& notices) {
  notices.push_back(
      fmt::format("{} has no names of its columns, and {} has some: their order could not be compared", path, other));
}

Layout layout_of(Config const& config) {
  ClickSettings const& click = config.settings<ClickSettings>();
  return make_layout(static_cast<std::size_t>(click.numeric_columns),
                     static_cast<std::size_t>(click.categorical_columns), click.multi_hot, click.weighted);
}

Samples open_click_files(std::span<fs::path const> files, Config const& config, std::vector<std::string>& notices,
                         SameColumns* same) {
  Layout const layout = layout_of(config);
  auto const binary = std::find_if(files.begin(), files.end(), is_binary);
  if (binary == files.end()) {
    TextOptions const options{.bad_share_max = config.data.bad_share_max,
                              .threads = static_cast<int>(config.settings<ClickSettings>().reader_threads),
                              .table = config.data.table,
                              .same = same};
    return read_samples_text(files, layout, options, notices);
  }
  fs::path const& path = *binary;
  GPUPS_REQUIRE(files.size() == 1,
                "{} is a binary file of samples, and {} files are named (several files are read as text, in order): "
                "join the text files before they are converted",
                path.string(), files.size());
  Samples samples = open_samples(path);
  GPUPS_REQUIRE(
      samples.layout() == layout,
      "{} has {} and {} (the configuration has {} and {}, or categories of other kinds): set data.numeric_columns, "
      "data.categorical_columns, data.multi_hot and data.weighted to the values that it was converted with",
      path.string(), with_count(samples.layout().numbers.size(), "number"),
      with_count(samples.layout().categories.size(), "category"), with_count(layout.numbers.size(), "number"),
      with_count(layout.categories.size(), "category"));
  if (same != nullptr) compare_names(samples, path, *same, notices);
  return samples;
}

ClickData::ClickData(Config const& config)
    : is_shuffled_(config.settings<ClickSettings>().order == "shuffled"),
      train_{open_click_files(files_named(config.data.folder, config.data.train, notices_), config, notices_,
                              &same_columns_)} {
  std::uint64_t const all = train_.count = train_.samples.size();
  auto const held_out = [&](std::string_view name, std::string const& file, double share) -> std::optional<Split> {
    if (file.empty()) {
      std::optional<Split> cut = cut_off(train_, share, all);
      if (!cut && share > 0) {
        notices_.push_back(fmt::format("data.{}_share = {} selects none of {}: there is no {} split", name, share,
                                       with_count(all, "sample"), name));
      }
      return cut;
    }
    auto const files = files_named(config.data.folder, file, notices_);
    std::vector<std::string> said;  // of the training files
    say_same_files(files_named(config.data.folder, config.data.train, said), files, std::string(name), notices_);
    Split split{open_click_files(files, config, notices_, &same_columns_)};
    split.count = split.samples.size();
    return split;
  };
  test_ = held_out("test", config.data.test, config.data.test_share);  // the last samples
  valid_ = held_out("valid", config.data.valid, config.data.valid_share);
  auto const is_text = [](std::optional<Split> const& split) { return split && split->samples.in_memory(); };
  if (!is_text(train_) && !is_text(valid_) && !is_text(test_)) require_no_text_settings(config);
  if (!is_text(train_) && train_.samples.names().empty() && same_columns_.has_names()) {
    say_no_names(config.data.train, same_columns_.first_path(), notices_);
  }
  GPUPS_REQUIRE(train_.count > 0,
                "{} has no samples for training (all are for validation and the test): lower data.valid_share and "
                "data.test_share",
                config.data.train);
  say_if_one_class(train_, "training", notices_);
  say_if_fractions(train_, notices_);
  if (valid_) say_if_one_class(*valid_, "validation", notices_);
  if (test_) say_if_one_class(*test_, "test", notices_);
  say_if_single(train_, notices_);
  statistics_ = measure_samples(train_.samples, train_.first, train_.count);
  std::string const& read_as = config.settings<ClickSettings>().numeric_features;
  if (read_as == "log" || read_as == "both") say_lost_digits(train_, same_columns_, notices_);
  say_if_all_rare(config);
  say_if_unknown(config);
}

void ClickData::say_if_unknown(Config const& config) {
  if (!valid_ && !test_) return;
  Layout const& layout = train_.samples.layout();
  auto const value_sets = ClickModel(layout, config, statistics_).features().value_sets();
  auto const labels = category_labels(layout, same_columns_);
  if (valid_) say_unknown_values(train_, *valid_, "validation", value_sets, labels, notices_);
  if (test_) say_unknown_values(train_, *test_, "test", value_sets, labels, notices_);
}

// Adds a notice if all values of a category share one row.
void ClickData::say_if_all_rare(Config const& config) {
  auto const min_count = static_cast<std::uint32_t>(config.settings<ClickSettings>().min_count);
  if (min_count == 0) return;
  ClickModel model(train_.samples.layout(), config, statistics_);
  frequent_values(model.features(), min_count);
  std::vector<std::string> names;
  std::uint64_t rare = 0;
  for (std::size_t c = 0; c < values_.size(); ++c) {
    if (values_[c].has_frequent) continue;
    names.push_back(train_.samples.layout().categories[c].name);
    rare += values_[c].values;
  }
  if (names.empty()) return;
  notices_.push_back(fmt::format(
      "left out all {} of {}, each with fewer than {} samples (model.min_count): all samples "
      "are alike in {}",
      with_count(rare, "value"), list_of(names), min_count, names.size() == 1 ? "this column" : "these columns"));
}

FrequentValues const& ClickData::frequent_values(Features const& features, std::uint32_t min_count) const {
  std::call_once(measured_, [&] {
    frequent_ = features.measure(train_.samples, train_.first, train_.count, min_count, &values_);
  });
  return frequent_;
}

std::uint64_t ClickData::digest() const {
  std::uint64_t digest = 0;
  auto const add = [&digest](Split const& split) {
    digest = random_bits(digest, split.samples.digest(), split.first, split.count);
  };
  add(train_);
  if (valid_) add(*valid_);
  if (test_) add(*test_);
  return digest;
}

std::string ClickData::summary() const {
  Layout const& layout = train_.samples.layout();
  return fmt::format("{} and {}; {} for training, {} for validation, {} for the test",
                     with_count(layout.numbers.size(), "number"), with_count(layout.categories.size(), "category"),
                     with_count(train_.count, "sample"), valid_ ? valid_->count : 0, test_ ? test_->count : 0);
}

nlohmann::json ClickData::counts() const {
  Layout const& layout = train_.samples.layout();
  return {{"numbers", layout.numbers.size()}, {"categories", layout.categories.size()}};
}

std::vector<Features::KeyEstimate> ClickData::key_estimates(Features const& features, std::size_t batch) const {
  std::lock_guard lock(estimating_);
  if (estimated_for_ != batch) {
    estimates_ = features.estimate_keys(train_.samples, train_.first, train_.count, batch);
    estimated_for_ = batch;
  }
  return estimates_;
}

MemoryPlan ClickData::memory_plan(Config const& config, Device device, StepSizes const& step) const {
  ClickSettings const& click = config.settings<ClickSettings>();
  ClickModel model(train_.samples.layout(), config, statistics_);
  Features& features = model.features();
  MemoryPlan plan;
  if (train_.samples.in_memory()) {
    std::uint64_t bytes = train_.samples.bytes();
    for (auto const* split : {&valid_, &test_}) {
      if (*split && &(*split)->samples.storage() != &train_.samples.storage()) bytes += (*split)->samples.bytes();
    }
    plan.push_back({.what = "the data", .bytes = bytes, .on_host = true, .taken = true});
  } else {
    std::uint64_t const blocks = train_.samples.storage().blocks();
    plan.push_back({.what = "blocks of the data's file, which are kept",
                    .bytes = train_.samples.bytes() / blocks * std::min<std::uint64_t>(blocks, kBlocksKept),
                    .on_host = true});
  }
  if (click.min_count > 0) {
    auto const& frequent = frequent_values(features, static_cast<std::uint32_t>(click.min_count));
    plan.push_back({.what = "frequent values", .bytes = frequent.size() * 24, .on_host = true, .taken = true});
    features.merge_rare_values(frequent);
  }

  auto const tables = click_tables(model, config, 1);
  auto const keys = key_estimates(features, step.samples);
  std::vector<BatchPart> parts;
  std::size_t const numbers = row_stride(features.numbers());
  std::uint64_t entries = 0, predicted = 0;
  for (std::size_t p = 0; p < tables.size(); ++p) {
    Features::KeyEstimate const& of_table = keys[p];
    bool const coefficients = of_table.coefficients || click.row_dropout > 0;
    BatchPart part{.entries = static_cast<std::size_t>(of_table.entries_per_sample * static_cast<double>(step.samples)),
                   .rows = static_cast<std::size_t>(of_table.in_batch),
                   .table = tables[p],
                   .entry_bytes = sizeof(Key) + 4 + (of_table.bags ? 4 : 0) + (coefficients ? 4 : 0)};
    entries += part.entries;
    predicted += static_cast<std::uint64_t>(of_table.entries_per_sample * kPredictBlock) *
                 (row_stride(part.table.dim) * sizeof(float) + part.entry_bytes + sizeof(std::uint32_t));
    parts.push_back(part);
    auto const rows = static_cast<std::size_t>(of_table.in_all / static_cast<double>(step.ranks));
    plan.push_back({fmt::format("table '{}': about {} rows, estimated from the data", tables[p].name, rows),
                    table_bytes(tables[p], rows), "model.dim, or set model.min_count"});
  }
  add_batches(plan, parts, step, device, "");
  std::uint64_t const of_samples = step.samples * (2 * sizeof(float) + numbers * sizeof(float));
  plan.push_back({fmt::format("numbers and labels of {} batches", step.prepared), of_samples * step.prepared,
                  "train.batch_size or train.lookahead"});
  Layout const& layout = train_.samples.layout();
  plan.push_back({.what = "a batch while it is read",
                  .bytes = step.samples * (numbers + layout.numbers.size() + 1) * sizeof(float) +
                           entries * (2 * sizeof(Key) + 4 * sizeof(std::uint32_t)),
                  .settings = "train.batch_size",
                  .on_host = true});

  std::uint64_t scratch = 0;
  for (std::size_t columns : model.scratch_columns()) scratch += row_stride(columns) * sizeof(float);
  plan.push_back({"blocks of samples and their gradients", ClickComputation::bytes_for(step.samples, features.width()),
                  "train.batch_size or model.dim"});
  plan.push_back({"activations of layers",
                  std::min(step.threads, step.microbatches) * step.microbatch_samples * scratch,
                  "train.batch_size, or raise train.microbatches"});
  for (MemoryPlanLine const& line :
       DenseLayers::memory_plan(model.parameters(), step.microbatches, click_dense_options(config, 1))) {
    plan.push_back({.what = line.what,
                    .bytes = line.bytes,
                    .settings = "model.top, model.bottom or train.microbatches",
                    .on_host = line.what.ends_with("on the host"),
                    .with_task = true});
  }
  std::uint64_t const floats = model.parameters().size() * sizeof(float);
  plan.push_back({.what = "checkpoints: dense layers", .bytes = 4 * floats, .on_host = true});
  if (step.ranks > 1) plan.push_back({"dense layers: sums in flight", 4 * floats, "model.top or model.bottom"});

  std::uint64_t const most = std::max(valid_ ? valid_->count : 0, test_ ? test_->count : 0);
  if (most > 0) {
    plan.push_back({"evaluation: a block of samples", predicted +
                                                          ClickComputation::bytes_for(kPredictBlock, features.width()) +
                                                          step.threads * ClickComputation::kPredictedAtOnce * scratch});
  }
  std::uint64_t const predictions = most + (click.progressive ? train_.count : 0);
  plan.push_back({.what = "evaluation: predictions", .bytes = 2 * predictions * sizeof(Prediction), .on_host = true});
  return plan;
}

std::unique_ptr<Task> ClickData::make_task(Config const& config, TaskContext const& context) const {
  return std::make_unique<ClickTask>(*this, config, context);
}

}  // namespace gpups::trainer
