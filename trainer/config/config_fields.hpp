// SPDX-License-Identifier: Apache-2.0
// The keys of a configuration as an array: the member of Config that holds each value, its valid values, and when it
// has an effect. config_fields_*.cpp builds the lists with FieldBuilder:
//
//   FieldBuilder("train", "batch_size", accessor, "samples in a step").range(1, 1 << 24).fixed_on_resume()
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "trainer/config/config.hpp"

namespace gpups::trainer {

using FieldPointer =
    std::variant<std::string*, std::int64_t*, double*, bool*, std::vector<std::int64_t>*, std::vector<std::string>*>;

// The condition under which a key has an effect.
struct Constraint {
  bool (*in)(Config const&) = [](Config const&) { return true; };
  std::string_view otherwise;  // why the key has no effect if `in` returns false, for messages
};

// One key of a configuration.
struct Field {
  std::string_view section, key, doc;
  FieldPointer (*pointer)(Config&) = nullptr;
  double least = std::numeric_limits<double>::lowest();  // range of a number
  double most = std::numeric_limits<double>::max();
  std::vector<std::string> choices{};  // valid strings; empty: any
  bool path = false;                   // a path, relative to the folder of the file or the working directory
  bool is_fixed_on_resume = false;     // a resumed run must have the same value
  bool ordered = false;                // a list whose order matters and which may have equal elements
  Constraint constraint{};

  std::string name() const { return std::string(section) + "." + std::string(key); }
};

// Returns the fields of all sections.
std::span<Field const> fields();

inline constexpr double kMost32 = 4294967295.0;
inline constexpr double kMost53 =
    9007199254740992.0;  // the largest integer that every TOML and JSON parser keeps exactly

using FieldAccessor = FieldPointer (*)(Config&);
template <auto Section, auto Member>
FieldPointer at(Config& config) {
  return &(config.*Section.*Member);
}

// Builds a Field; each function sets one property.
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

// The keys of each section. click_model_fields() has the keys of [model] that only click models use.
std::vector<Field> data_fields();
std::vector<Field> model_fields();
std::vector<Field> click_model_fields();
std::vector<Field> optimizer_fields();
std::vector<Field> linear_fields();
std::vector<Field> dense_fields();
std::vector<Field> gradient_compression_fields();
std::vector<Field> refresh_compression_fields();
std::vector<Field> train_fields();
std::vector<Field> placement_fields();
std::vector<Field> eval_fields();
std::vector<Field> run_fields();
std::vector<Field> cluster_fields();

}  // namespace gpups::trainer
