// SPDX-License-Identifier: Apache-2.0
#include "trainer/tasks/task_kinds.hpp"

#include "trainer/config/task_kind.hpp"
#include "trainer/tasks/click/click_kind.hpp"
#include "trainer/tasks/graph/graph_kind.hpp"
#include "trainer/tasks/interactions/interaction_kind.hpp"
#include "trainer/tasks/nodes/node_kind.hpp"
#include "trainer/tasks/ratings/rating_kind.hpp"
#include "trainer/tasks/words/word_kind.hpp"

namespace gpups::trainer {

TaskKinds task_kinds() {
  static TaskKind const* const all[] = {&graph_kind(),       &click_kind(), &rating_kind(),
                                        &interaction_kind(), &word_kind(),  &node_kind()};
  return all;
}

Config load_config(std::filesystem::path const& file, std::vector<SettingOverride> const& overrides) {
  return load_config(file, overrides, task_kinds());
}

Config parse_config(std::string const& text, std::string const& name, std::filesystem::path const& folder,
                    std::vector<SettingOverride> const& overrides) {
  return parse_config(text, name, folder, overrides, task_kinds());
}

Config default_config(std::string_view reader) { return default_config(reader, task_kinds()); }

}  // namespace gpups::trainer
