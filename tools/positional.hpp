// SPDX-License-Identifier: Apache-2.0
// An argument that is known by its place on the command line, whose name in the help says all of it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace gpups::tools {

template <class T>
CLI::Option* positional(CLI::App& command, std::string const& name, T& value, std::string const& what) {
  return command.add_option(name, value, what)->type_name("");
}

}  // namespace gpups::tools
