// SPDX-License-Identifier: Apache-2.0
// A key of a configuration: where its value is, which values are valid, and when it has an effect.
//
//   FieldBuilder("train", "batch_size", at<&Config::train, &TrainConfig::batch_size>, "samples in a step")
//       .range(1, 1 << 24)
//       .fixed_on_resume()
//
// Each kind of task lists its keys (TaskKind::fields()): keys of its own, and the groups below that it uses.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/base/overloaded.hpp"
#include "trainer/config/config.hpp"

namespace gpups::trainer {

using FieldPointer =
    std::variant<std::string*, std::int64_t*, double*, bool*, std::vector<std::int64_t>*, std::vector<std::string>*>;
using FieldAccessor = FieldPointer (*)(Config&);

// A condition under which a key has an effect.
struct Constraint {
  bool (*in)(Config const&);
  std::string_view otherwise;  // why the key has no effect if `in` returns false, for messages
};

// One key of a configuration.
struct Field {
  std::string_view section, key, doc;
  FieldAccessor pointer = nullptr;
  double least = std::numeric_limits<double>::lowest();  // range of a number
  double most = std::numeric_limits<double>::max();
  std::vector<std::string> choices{};         // valid strings; empty: any
  std::vector<std::string> hidden_choices{};  // valid too, but messages do not offer them
  bool path = false;                          // a path, relative to the folder of the file or the working directory
  bool is_fixed_on_resume = false;            // a resumed run must have the same value
  bool ordered = false;                       // a list whose order matters and which may have equal elements
  bool is_same_in_trials = false;             // a search may not vary it: it changes samples, time or validation
  std::vector<Constraint> constraints{};

  std::string name() const { return std::string(section) + "." + std::string(key); }
  // Returns why the key has no effect in this configuration, or nothing if it has.
  std::optional<std::string_view> unused_because(Config const& config) const {
    for (Constraint const& constraint : constraints) {
      if (!constraint.in(config)) return constraint.otherwise;
    }
    return std::nullopt;
  }
  bool is_used(Config const& config) const { return !unused_because(config); }
};

inline constexpr double kMost32 = 4294967295.0;
inline constexpr double kMost53 =
    9007199254740992.0;  // the largest integer that every TOML and JSON parser keeps exactly

// Returns the address of a member of a section.
template <auto Section, auto Member>
FieldPointer at(Config& config) {
  return &(config.*Section.*Member);
}

// The type of the settings that have a member.
template <auto Member>
struct SettingsOf;
template <class Settings, class Value, Value Settings::*Member>
struct SettingsOf<Member> {
  using Type = Settings;
};
// Returns the address of a member of the settings of the kind of task; see Config::settings().
template <auto Member>
FieldPointer in_task(Config& config) {
  return &(config.settings<typename SettingsOf<Member>::Type>().*Member);
}

// Builds a Field; each function sets one property.
struct FieldBuilder : Field {
  FieldBuilder(std::string_view in_section, std::string_view its_key, FieldAccessor read, std::string_view its_doc) {
    section = in_section, key = its_key, pointer = read, doc = its_doc;
  }
  FieldBuilder& range(double from, double to) { return least = from, most = to, *this; }
  FieldBuilder& one_of(std::vector<std::string> words) { return choices = std::move(words), *this; }
  FieldBuilder& or_hidden(std::vector<std::string> words) { return hidden_choices = std::move(words), *this; }
  FieldBuilder& is_path() { return path = true, *this; }
  FieldBuilder& keeps_order() { return ordered = true, *this; }
  FieldBuilder& fixed_on_resume() { return is_fixed_on_resume = true, *this; }
  FieldBuilder& same_in_trials() { return is_same_in_trials = true, *this; }
  // The key has no effect unless this constraint, and those before, are satisfied.
  FieldBuilder& only_if(Constraint when) { return constraints.push_back(when), *this; }
};

// Adds a constraint to each field.
std::vector<Field> only_if(Constraint when, std::vector<Field> fields);
// Returns the fields of all lists.
std::vector<Field> joined(std::vector<std::vector<Field>> lists);

// Returns the keys that a configuration for this kind of task may have: those of the kind, and those that all kinds
// have. They are in the order in which a configuration is written. known: all kinds, whose readers and models are the
// values of data.reader and model.name.
std::vector<Field> fields_of(TaskKind const& kind, TaskKinds known);
// Returns whether the configuration has the key "section.key", and the key has an effect.
bool is_used(Config const& config, std::string_view name);

// Sets those of the keys that have no effect in `config` to their values in `defaults`, of the same kind of task.
void reset_unused(Config& config, std::vector<Field const*> const& keys, Config const& defaults);

// Groups of keys that several kinds of tasks have. Their values are in Config.

// Files of samples, and how many of their lines may be bad.
FieldBuilder train_file();
FieldBuilder valid_file();
FieldBuilder test_file();
FieldBuilder bad_share_max();
// How lines of these files are divided into columns (input/table_layout.hpp).
std::vector<Field> table_fields();
// Samples that are held out for validation and the test.
FieldBuilder valid_share();
FieldBuilder test_share();
FieldBuilder split_seed();
// Their constraints for data that holds out samples of data.train if data.valid, data.test or one of them is empty.
extern Constraint const kValidIsCut, kTestIsCut, kAnyIsCut;
// The constraint of a penalty on rows that the optimizer adds to their gradients.
extern Constraint const kAddsL2;

// Rows: dim, initial values and data type; the optimizer; the schedule of its learning rate.
std::vector<Field> row_fields();
std::vector<Field> optimizer_fields();
std::vector<Field> schedule_fields();
// Dense layers: their optimizer, and the allreduce of their gradients.
std::vector<Field> dense_fields();

// Returns whether a direction of [gradient_compression] or [refresh_compression] is compressed.
bool compresses(CompressionConfig const& compression);

FieldBuilder ranking_cutoffs();    // eval.hits
FieldBuilder reuse_batches();      // train.reuse_batches: steps do not depend on the epoch
FieldBuilder expire_after();       // train.expire_after: new keys appear while training
FieldBuilder initial_placement();  // placement.initial: the kind has Data::sample_rows()

}  // namespace gpups::trainer
