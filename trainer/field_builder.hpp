// SPDX-License-Identifier: Apache-2.0
// Fields of a configuration in words, for the lists of them: FieldBuilder("train", "batch", place, "...").range(1,
// 8).fixed_on_resume().
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/config_fields.hpp"

namespace gpups::trainer {

inline constexpr double kMost32 = 4294967295.0;
inline constexpr double kMost53 = 9007199254740992.0;  // what readers of TOML and JSON in any language keep exactly

using FieldAccessor = FieldPointer (*)(Config&);
template <auto Section, auto Member>
FieldPointer at(Config& config) {
  return &(config.*Section.*Member);
}

struct FieldBuilder : Field {
  FieldBuilder(std::string_view in_section, std::string_view its_key, FieldAccessor read, std::string_view its_doc) {
    section = in_section, key = its_key, pointer = read, doc = its_doc;
  }
  FieldBuilder& range(double from, double to) { return least = from, most = to, *this; }
  FieldBuilder& one_of(std::vector<std::string> words) { return choices = std::move(words), *this; }
  FieldBuilder& is_path() { return path = true, *this; }
  FieldBuilder& keeps_order() { return ordered = true, *this; }
  FieldBuilder& fixed_on_resume() { return is_fixed_on_resume = true, *this; }
  FieldBuilder& only_if(Constraint when) { return constraint = when, *this; }
  FieldBuilder& is_codec() { return one_of({"lossless", "float16", "bfloat16", "int8", "int4"}).fixed_on_resume(); }
};

// The keys of each section; those of models that only learn from clicks are apart.
std::vector<Field> data_fields();
std::vector<Field> model_fields();
std::vector<Field> click_model_fields();
std::vector<Field> optimizer_fields();
std::vector<Field> linear_fields();
std::vector<Field> dense_fields();
std::vector<Field> gradient_compression_fields();
std::vector<Field> refresh_compression_fields();
std::vector<Field> train_fields();
std::vector<Field> eval_fields();
std::vector<Field> run_fields();
std::vector<Field> cluster_fields();

}  // namespace gpups::trainer
