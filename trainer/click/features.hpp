// SPDX-License-Identifier: Apache-2.0
// Which rows a sample of click data names, and where their values go: a sample becomes one row of floats, its block, in
// which every category has a place as wide as its rows.
//
//   | head: the numbers, or what is made of them | first group of categories | second group | .. |
//
// Categories with rows of one dim are a group, and lie in one table of the store, whatever their number: a key is the
// value's id, mixed with the salt of its category. So a step names the rows of all categories at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "trainer/click/entries.hpp"
#include "trainer/click/layout.hpp"
#include "trainer/click/sample_statistics.hpp"
#include "trainer/click/samples.hpp"
#include "trainer/config.hpp"

namespace gpups::trainer {

// The key of a category's value. `space`: the category's name, or that of the first of those that share rows.
Key click_key(std::string_view space, std::uint64_t value_id);

// What a model takes of samples.
struct FeatureNeeds {
  bool rows = true;           // rows for each category, in the block
  bool weights = false;       // rows of one number for each category, summed over a sample
  bool numbers = true;        // the numbers as floats
  bool head_of_rows = false;  // the head has room for one row of model.dim, to which the model writes; else it has the
                              // numbers
};

// A batch's samples and entries, on a device.
struct ClickInput {
  std::size_t samples = 0;
  Array<float> labels;    // (n)
  Matrix<float> numbers;  // (n, numbers())
  struct InputPart {
    TableId table{};
    Array<Key> keys;               // (entries)
    Array<std::uint32_t> offsets;  // (bags + 1), or empty: an entry is a bag
    Array<float> coefficients;     // (entries), or empty: all 1
    Array<std::uint32_t> targets;  // (bags) the row of values(part) that a bag goes to; empty: row b
    Array<std::uint32_t> sources;  // (entries) the target of each entry's bag
    bool weights = false;          // one bag for each sample; else one for each sample and category
  };
  std::vector<InputPart> parts;
};

class Features {
 public:
  // statistics: of the training data; empty: numbers are not scaled. Throws Error where the configuration does not fit
  // the layout.
  Features(Layout const& layout, ModelConfig const& config, FeatureNeeds const& needs,
           SampleStatistics const& statistics = {});

  // In the order of ClickInput::parts, without what the optimizer is.
  struct FeatureTable {
    std::string name;
    std::size_t dim;
    bool weights;
  };
  std::vector<FeatureTable> const& tables() const { return tables_; }

  std::size_t numbers() const { return numbers_; }  // columns of numbers; 0: not used
  std::size_t width() const { return width_; }      // floats of a block, padding included: its stride
  // Whether blocks begin with the numbers, as a copy.
  bool head_has_numbers() const { return needs_.rows && !needs_.head_of_rows && numbers_ > 0; }
  std::size_t categories() const { return fields_.size(); }
  // Where a block has the row of each category, and of each number's bucket: by name, in the order of columns.
  std::vector<std::pair<std::string, std::size_t>> columns() const;
  // Whether all categories have rows of one dim, side by side: what models of pairs need.
  bool even() const { return groups_.size() == 1; }
  // Where the first of them is, in rows of their width. REQUIRES: even().
  std::size_t first_slot() const { return fields_.front().column / row_stride(groups_.front().dim); }

  // The values of categories that come `min_count` times or more in samples first .. first + count - 1: in all of
  // them, or in the million that each_measured() reads.
  FrequentValues measure(Samples const& samples, std::uint64_t first, std::uint64_t count,
                         std::uint32_t min_count) const;
  // What samples first .. first + count - 1 name of each table, from some of them that lie evenly between them.
  struct KeyEstimate {
    double entries_per_sample = 0;
    double in_batch = 0;  // different keys among `batch` samples
    double in_all = 0;    // different keys among all `count`
    bool bags = false;    // with an array of bags' targets, and
    bool coefficients = false;
  };
  std::vector<KeyEstimate> estimate_keys(Samples const& samples, std::uint64_t first, std::uint64_t count,
                                         std::uint64_t batch) const;

  // From now on all other values of a category share a row. Before the first make(); `values` must stay.
  void tell_apart(FrequentValues const& values);

  // Waits for `stream`.
  ClickInput make(Stream& stream, SampleBatch const& samples, RowDropout const& dropout = {}) const;

  // Blocks of n samples as rows of one part's table: what its bags' targets number.
  template <class T>
  MatrixView<T> slots(std::size_t part, T* blocks, std::size_t samples, Device device) const {
    std::size_t const dim = tables_[part].dim, stride = row_stride(dim);
    return {blocks, samples * (width_ / stride), dim, stride, device};
  }

 private:
  struct FieldPlace {
    std::uint64_t salt;
    std::size_t column;      // in the block
    std::size_t number = 0;  // of the column of numbers, or of the category
    bool bucket = false;     // it is a number's bucket
    std::string name;
  };
  struct DimGroup {
    std::size_t dim;
    std::vector<std::size_t> fields;
    bool has(std::size_t field) const { return std::find(fields.begin(), fields.end(), field) != fields.end(); }
  };
  void place_groups(ModelConfig const& config);
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
