// SPDX-License-Identifier: Apache-2.0
// The kinds of tasks of the trainer, and configurations for them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/config.hpp"

namespace gpups::trainer {

// Returns all kinds of tasks. The first is the default.
TaskKinds task_kinds();

// As the functions of trainer/config/config.hpp, for all kinds.
Config load_config(std::filesystem::path const& file, std::vector<SettingOverride> const& overrides = {});
Config parse_config(std::string const& text, std::string const& name, std::filesystem::path const& folder,
                    std::vector<SettingOverride> const& overrides = {});
// As the function of trainer/config/task_kind.hpp, for all kinds.
Config default_config(std::string_view reader);

}  // namespace gpups::trainer
