// SPDX-License-Identifier: Apache-2.0
// The keys of a configuration as an array: where each is kept, what it may be, and when it has an effect.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "trainer/config.hpp"

namespace gpups::trainer {

using FieldPointer =
    std::variant<std::string*, std::int64_t*, double*, bool*, std::vector<std::int64_t>*, std::vector<std::string>*>;

// When a key has an effect, and in which words to say that it has none.
struct Constraint {
  bool (*in)(Config const&) = [](Config const&) { return true; };
  std::string_view otherwise;
};

struct Field {
  std::string_view section, key, doc;
  FieldPointer (*pointer)(Config&) = nullptr;
  double least = std::numeric_limits<double>::lowest();  // of numbers
  double most = std::numeric_limits<double>::max();
  std::vector<std::string> choices{};  // of strings; empty: any
  bool path = false;                   // relative to where the key was given
  bool is_fixed_on_resume = false;     // for a checkpoint
  bool ordered = false;                // of lists: the order has a meaning, and what is in them may come twice
  Constraint constraint{};

  std::string name() const { return std::string(section) + "." + std::string(key); }
};

std::span<Field const> fields();

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
