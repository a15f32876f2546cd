// SPDX-License-Identifier: Apache-2.0
// Looks keys up while a configuration is read: those of the kind of task that it selects, and those of other kinds, for
// messages.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/task_kind.hpp"

namespace gpups::trainer {

// The file and line, or the option, that gives a value: for messages and relative paths.
struct Origin {
  std::string text;  // "run.toml:3" or "--set model.dim=x"
  std::filesystem::path folder;
};

// The keys of a kind of task, and those of others.
class KnownKeys {
 public:
  // known: all kinds of tasks.
  KnownKeys(TaskKind const& kind, TaskKinds known);

  TaskKind const& kind() const { return kind_; }
  std::vector<Field> const& fields() const { return fields_; }
  // Returns the names of the sections of all kinds.
  std::vector<std::string> sections() const;
  // Throws Error if no kind has a section, with the section that may have been meant, or all of them.
  void require_section(std::string const& section, Origin const& origin) const;
  // Returns the sections that have a key, as in "[data] or [dense]", or all sections.
  std::string sections_with(std::string const& key) const;
  // Returns a field, or null if only other kinds have it. Throws Error if no kind has it, with the key that may have
  // been meant, or those of the section.
  Field const* find(std::string const& section, std::string const& key, Origin const& origin) const;
  // Returns the readers with which a key of other kinds has an effect, as in: "text" or "edges".
  std::string readers_with(std::string const& section, std::string const& key) const;

 private:
  template <class F>
  void each(F f) const {
    for (Field const& field : fields_) f(field);
    for (auto const& [kind, field] : others_) f(field);
  }

  TaskKind const& kind_;
  TaskKinds kinds_;
  std::vector<Field> fields_;
  std::vector<std::pair<TaskKind const*, Field>> others_;
};

}  // namespace gpups::trainer
