// SPDX-License-Identifier: Apache-2.0
// The names of this machine.
#pragma once

#include <unistd.h>

#include <fstream>
#include <string>

namespace gpups::comm {

// Returns the host name, for error texts; "unknown" if the system gives none.
inline std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

// Returns an id of this machine. Ranks with equal ids share memory and cores. The id is constant until the next boot.
inline std::string machine_name() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  return std::getline(file, id) ? id : host_name();
}

}  // namespace gpups::comm
