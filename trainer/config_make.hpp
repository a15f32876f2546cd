// SPDX-License-Identifier: Apache-2.0
// Fields of a configuration in words, for the lists of them: Make("train", "batch", place, "...").range(1, 8).kept().
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/config_fields.hpp"

namespace gpups::trainer {

inline constexpr double kMost32 = 4294967295.0;
inline constexpr double kMost53 = 9007199254740992.0;  // what readers of TOML and JSON in any language keep exactly

using Read = Place (*)(Config&);
template <auto Section, auto Member>
Place at(Config& config) {
  return &(config.*Section.*Member);
}

struct Make : Field {
  Make(std::string_view in_section, std::string_view its_key, Read read, std::string_view its_doc) {
    section = in_section, key = its_key, place = read, doc = its_doc;
  }
  Make& range(double from, double to) { return least = from, most = to, *this; }
  Make& one_of(std::vector<std::string> words) { return choices = std::move(words), *this; }
  Make& a_path() { return path = true, *this; }
  Make& in_order() { return ordered = true, *this; }
  Make& kept() { return matters = true, *this; }
  Make& with(Use when) { return use = when, *this; }
  Make& a_codec() { return one_of({"lossless", "float16", "bfloat16", "int8", "int4"}).kept(); }
};

// The keys of each section; those of models that only learn from clicks are apart.
std::vector<Field> data_fields();
std::vector<Field> model_fields();
std::vector<Field> click_model_fields();
std::vector<Field> optimizer_fields();
std::vector<Field> weights_fields();
std::vector<Field> dense_fields();
std::vector<Field> gradients_fields();
std::vector<Field> refreshes_fields();
std::vector<Field> train_fields();
std::vector<Field> eval_fields();
std::vector<Field> run_fields();
std::vector<Field> cluster_fields();

}  // namespace gpups::trainer
