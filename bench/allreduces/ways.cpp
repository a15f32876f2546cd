// SPDX-License-Identifier: Apache-2.0
#include "bench/allreduces/way.hpp"

namespace gpups::bench {

std::vector<WayEntry> const& ways() {
  static std::vector<WayEntry> const all = [] {
    std::vector<WayEntry> list{{"mpi_dense", true, true, 1e-6, make_mpi_dense},
                               {"exact", true, false, 1e-6, make_exact}};
    for (auto& way : ways_of_group()) list.push_back(std::move(way));
    return list;
  }();
  return all;
}

}  // namespace gpups::bench
