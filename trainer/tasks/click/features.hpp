// SPDX-License-Identifier: Apache-2.0
// Maps samples of click data to keys of rows, and to blocks. The block of a sample is one row of floats, in which every
// category has a slot as wide as its rows:
//
//   | head: the numbers, or a vector computed from them | first group of categories | second group | .. |
//
// Categories whose rows have the same dim are a group and share one table of the store: a key is the id of a value,
// mixed with the salt of its category. So a batch needs one part for all categories of a group.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/config/config.hpp"
#include "trainer/tasks/click/entries.hpp"
#include "trainer/tasks/click/layout.hpp"
#include "trainer/tasks/click/sample_statistics.hpp"
#include "trainer/tasks/click/samples.hpp"

namespace gpups::trainer {

// Returns the key of a category's value. space: the name of the category, or of the first of those that share rows.
Key click_key(std::string_view space, std::uint64_t value_id);

// The features of samples that a model uses.
struct FeatureNeeds {
  bool rows = true;           // rows for each category, in the block
  bool weights = false;       // the linear part: a weight for each value, summed over a sample
  bool numbers = true;        // the numbers as floats
  bool head_of_rows = false;  // the head is a row of model.dim, which the model writes; else it is the numbers
};

// The samples and entries of a batch, on a device.
struct ClickInput {
  std::size_t samples = 0;
  Array<float> labels;    // (n)
  Matrix<float> numbers;  // (n, numbers())
  struct InputPart {
    TableId table{};
    Array<Key> keys;               // (entries)
    Array<std::uint32_t> offsets;  // (bags + 1), or empty: each entry is a bag
    Array<float> coefficients;     // (entries), or empty: all 1
    Array<std::uint32_t> targets;  // (bags): the row of slots(part) into which bag b is pooled; empty: row b
    Array<std::uint32_t> sources;  // (entries): the target of each entry's bag
    bool weights = false;          // the linear part: one bag for each sample; else one for each sample and category
  };
  std::vector<InputPart> parts;
};

// The distinct values of a category.
struct ValueCounts {
  std::uint64_t values = 0;
  bool has_frequent = false;
};

// Makes a model's input from samples of a layout.
class Features {
 public:
  // statistics: of the training data; empty: numbers are not scaled. Throws Error if the configuration does not fit the
  // layout.
  Features(Layout const& layout, Config const& config, FeatureNeeds const& needs,
           SampleStatistics const& statistics = {});

  // The tables of rows, in the order of ClickInput::parts.
  struct FeatureTable {
    std::string name;
    std::size_t dim;
    bool weights;
  };
  std::vector<FeatureTable> const& tables() const { return tables_; }

  std::size_t numbers() const { return numbers_; }  // columns of numbers; 0: not used
  std::size_t width() const { return width_; }      // floats of a block, padding included: its stride
  // Whether the head of a block is a copy of the numbers.
  bool head_has_numbers() const { return needs_.rows && !needs_.head_of_rows && numbers_ > 0; }
  std::size_t categories() const { return fields_.size(); }
  // Returns the name of each category and of each number's bucket, with the first column of its row in a block, in the
  // order of columns.
  std::vector<std::pair<std::string, std::size_t>> columns() const;
  // Whether the rows of all categories have one dim and are contiguous, which models of pairs need.
  bool even() const { return groups_.size() == 1; }
  // The place of the first of these rows in a block, counted in rows. REQUIRES: even().
  std::size_t first_slot() const { return fields_.front().column / row_stride(groups_.front().dim); }

  // Returns for each category the first one whose rows it shares (model.shared): itself, in general.
  std::vector<std::size_t> value_sets() const;
  // Returns whether each of a category's values has a row of its own in the store. Blocks. Not a collective call, but
  // see Store::lookup(). REQUIRES: the model has tables.
  std::vector<bool> wait_have_rows(Stream& stream, Store& store, std::size_t category,
                                   std::span<std::uint64_t const> values) const;

  // Returns the values of categories that occur at least `min_count` times in samples first .. first + count - 1. Reads
  // all of them, and takes 18 to 36 bytes for each distinct value meanwhile. of_categories: receives the values of
  // each category; of those that share rows, the first one has the values of all. May be null.
  FrequentValues measure(Samples const& samples, std::uint64_t first, std::uint64_t count, std::uint32_t min_count,
                         std::vector<ValueCounts>* of_categories = nullptr) const;
  // Estimated numbers of entries and keys of a table.
  struct KeyEstimate {
    double entries_per_sample = 0;
    double in_batch = 0;  // distinct keys of `batch` samples
    double in_all = 0;    // distinct keys of all `count` samples
    bool bags = false;    // whether the part has targets, and whether it has coefficients
    bool coefficients = false;
  };
  // Returns an estimate for each table, from about kMeasured of the samples first .. first + count - 1.
  std::vector<KeyEstimate> estimate_keys(Samples const& samples, std::uint64_t first, std::uint64_t count,
                                         std::uint64_t batch) const;

  // Merges the values of a category that are not in `values`: they share one row. `values` must outlive this object.
  // REQUIRES: make() was not called yet.
  void merge_rare_values(FrequentValues const& values);

  // Returns the input of a batch of samples. Blocks until it is on the stream's device.
  ClickInput make(Stream& stream, SampleBatch const& samples, RowDropout const& dropout = {}) const;

  // The blocks of some samples as rows of a part's table. ClickInput's targets and sources are indices of these rows.
  template <class T>
  MatrixView<T> slots(std::size_t part, T* blocks, std::size_t samples, Device device) const {
    std::size_t const dim = tables_[part].dim, stride = row_stride(dim);
    return {blocks, samples * (width_ / stride), dim, stride, device};
  }

 private:
  struct FieldPlace {
    std::uint64_t salt;
    std::size_t column;      // in the block
    std::size_t number = 0;  // the column of numbers, or the category
    bool bucket = false;     // it is the bucket of a number
    std::string name;
  };
  struct DimGroup {
    std::size_t dim;
    std::vector<std::size_t> fields;
    bool has(std::size_t field) const { return std::find(fields.begin(), fields.end(), field) != fields.end(); }
  };
  void place_groups(std::int64_t dim);
  void add_numbers(std::vector<float>& numbers, SampleBatch const& samples) const;
  EntryPlan make_plan(std::size_t part) const;
  ClickInput::InputPart make_part(Stream& stream, SampleBatch const& samples, std::size_t part,
                                  RowDropout const& dropout) const;

  FeatureNeeds needs_;
  bool mean_;
  std::uint32_t buckets_;
  std::size_t layout_numbers_, layout_categories_;
  std::size_t numbers_, width_ = 0;
  SampleStatistics statistics_;
  std::vector<FieldPlace> fields_;
  std::vector<DimGroup> groups_;
  std::vector<FeatureTable> tables_;
  std::vector<EntryPlan> plans_;  // of each table
};

}  // namespace gpups::trainer
