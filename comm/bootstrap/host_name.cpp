// SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/host_name.hpp"

#include <unistd.h>

#include <fstream>

namespace gpups::comm {

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

std::string machine_name() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  return std::getline(file, id) ? id : host_name();
}

}  // namespace gpups::comm
