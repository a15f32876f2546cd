// SPDX-License-Identifier: Apache-2.0
// The interface of a kind of task. A kind owns its readers, its settings with their defaults and constraints, its
// models, and the uses of a trained model.
//
// To add a kind, add a folder to trainer/tasks, and a line to trainer/tasks/task_kinds.cpp. The data and the steps of a
// kind implement the interfaces of trainer/step/task.hpp.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/config.hpp"
#include "trainer/config/fields.hpp"
#include "trainer/input/dictionary.hpp"

namespace gpups::trainer {

class Data;         // trainer/step/task.hpp
struct SavedModel;  // trainer/saved/saved_model.hpp

// The largest parts of a model. They are known from its configuration, before any data is read.
struct ModelShape {
  std::size_t widest_row = 0;     // largest dim of all tables
  std::size_t largest_layer = 0;  // Parameter::size() of the largest layer; 0: the model has no dense layers
};

// The files that an export writes: the rows as NumPy arrays or as flat files; or the vectors of words, nodes or items
// as a file of word2vec, as text or binary.
enum class ModelFormat { kNpy, kFlat, kWord2vec, kWord2vecBinary };

// A kind of task. Any thread.
class TaskKind {
 public:
  virtual ~TaskKind() = default;

  // Returns the values of data.reader that select this kind; the first is its default.
  virtual std::vector<std::string> readers() const = 0;
  // Returns the values of model.name.
  virtual std::vector<std::string> models() const = 0;

  // Returns the values of keys that a file does not give. Config::task.values has the kind's own settings; the caller
  // sets the other members of Config::task, and data.reader.
  virtual Config defaults() const = 0;
  // Returns the keys that the kind has, apart from those that all kinds have. A view of a static string is valid as
  // section, key and doc.
  virtual std::vector<Field> fields() const = 0;
  // Sets defaults that depend on other settings. given: the names of the keys that have been given, whose values stay.
  // May be called again after a change of other settings.
  virtual void set_defaults(Config&, std::set<std::string> const& /*given*/) const {}
  // Returns the folder of the data if data.folder is not given, or "" for the folder of the configuration file.
  virtual std::string default_folder(Config const&) const { return {}; }
  // Throws Error for settings that contradict each other. name: of the configuration, for messages.
  virtual void check(Config const&, std::string const& /*name*/) const {}
  // Throws Error if a part of the model has no effect. For new runs only.
  virtual void check_effect(Config const&, std::string const& /*name*/) const {}

  // Reads the data of a configuration. Throws Error, with file and line, if a file has no samples or too many bad
  // lines.
  virtual std::unique_ptr<Data const> read(Config const& config) const = 0;
  // Returns the sizes of the configuration's model. Throws Error if the settings of the model are invalid.
  virtual ModelShape shape(Config const& config) const {
    return {.widest_row = static_cast<std::size_t>(config.model.dim)};
  }

  // Returns the number of steps with fewer of which a model of this configuration hardly learns.
  virtual std::int64_t least_steps(Config const&) const { return 100; }

  // Writes what other programs need to use a trained model to `folder`, which must not exist, or be empty. Adds
  // sentences about names that training has not seen to `notices`. Returns false if the kind has no such format. Throws
  // Error if the folder cannot be written.
  virtual bool export_model(SavedModel const&, std::filesystem::path const& /*folder*/, ModelFormat,
                            std::vector<std::string>& /*notices*/) const {
    return false;
  }
  // Calls `take` with a prediction for each sample of `file`, in order and some at a time. Adds sentences about the
  // file to `notices`. Returns false if models of this kind predict no samples. Throws Error for an invalid sample.
  virtual bool predict(SavedModel const&, std::filesystem::path const& /*file*/, std::vector<std::string>& /*notices*/,
                       std::function<void(std::span<float const>)> const& /*take*/) const {
    return false;
  }
  // Returns text: for each user, a line with the name and a line for each of the `count` items with the largest scores.
  // Users that training has not seen are left out, and a notice says so. Returns nothing if the kind has no users and
  // items. Throws Error if training has seen none of the users.
  virtual std::optional<std::string> recommend(SavedModel const&, std::vector<QueriedName> const& /*users*/,
                                               std::size_t /*count*/, std::vector<std::string>& /*notices*/) const {
    return std::nullopt;
  }
};

// Returns the kind that has this reader, or null.
TaskKind const* kind_with_reader(TaskKinds kinds, std::string_view reader);
// Returns the default configuration of a reader. REQUIRES: one of the kinds has it.
Config default_config(std::string_view reader, TaskKinds kinds);

}  // namespace gpups::trainer
