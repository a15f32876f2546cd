// SPDX-License-Identifier: Apache-2.0
// Samples whose categories have values that training has not seen, such as `105` where the training data have `105.0`:
// what the model has learned about a value does not reach them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/tasks/click/click_data.hpp"

namespace gpups::trainer {

// Returns what a column is called in messages: its name in quotes if the files have a heading, and else `name`. column:
// of the layout, after the label.
std::string column_label(SameColumns const& columns, std::size_t column, std::string const& name);

// Returns the name of each category for messages: 'site' in quotes if the files have a heading, and else C1.
std::vector<std::string> category_labels(Layout const& layout, SameColumns const& columns);

// Adds a notice if most samples of a split have a value of a category that training has not seen, and samples from the
// training data would rarely have one: a column of users, of which new ones come all the time, is usual. Compares up to
// 4096 samples of the split with up to 2^18 of `train`, of evenly spaced blocks, and reads of these only what it needs:
// in general a block or two. name: of the split, for messages. value_sets: see Features::value_sets(). labels: see
// category_labels().
void say_unknown_values(Split const& train, Split const& split, std::string_view name,
                        std::span<std::size_t const> value_sets, std::span<std::string const> labels,
                        std::vector<std::string>& notices);

// Adds a notice if at least half of some samples have a value of a category without a row in the store: of at least
// three samples, or of fewer if no value of any category has a row. Not a collective call, but see Store::lookup().
void say_values_without_rows(Stream& stream, Store& store, Features const& features, SampleBatch const& samples,
                             std::span<std::string const> labels, std::vector<std::string>& notices);

}  // namespace gpups::trainer
