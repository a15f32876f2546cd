// SPDX-License-Identifier: Apache-2.0
// The command line of gpu_train.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tools/convert_options.hpp"
#include "trainer/config/config.hpp"

namespace gpups::tools {

// A command with its arguments and options.
struct CommandLine {
  std::string command;  // "train", "search", "bench", "eval", "nearest", "recommend", "predict", "export", "report",
                        // "convert" or "doctor"
  std::string config;   // of train, search, bench and doctor; empty: doctor without a configuration
  bool resume = false;
  std::string run_folder;  // of eval, nearest, recommend, predict, export and report
  std::string file;        // of predict, and of recommend: a user in each line
  // Of predict, export and report; empty: standard output, or a file in the run's folder; of report, -: standard
  // output.
  std::string out;
  std::string format = "npy";
  std::string split = "test";
  std::vector<std::string> names;
  std::size_t count = 10;
  std::optional<Conversion> conversion;  // of convert
  std::vector<trainer::SettingOverride> overrides;
};

// Parses the command line. Returns nothing if it asks for help or the version, which are printed. Throws Error if the
// command line is not valid.
std::optional<CommandLine> parse_command_line(int argc, char** argv);

// Adds an argument without a dash. The help shows its name only, not the type of its value.
template <class T>
CLI::Option* positional(CLI::App& command, std::string const& name, T& value, std::string const& what) {
  return command.add_option(name, value, what)->type_name("");
}

}  // namespace gpups::tools
