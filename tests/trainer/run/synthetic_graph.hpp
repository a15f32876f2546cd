// SPDX-License-Identifier: Apache-2.0
// Files of a small knowledge graph that follows a simple rule.
#pragma once

#include <fmt/format.h>

#include <string>

#include "tests/support/temporary_folder.hpp"

namespace gpups::test {

// 120 entities in a circle, and four relations that lead to the entity 1, 7, 30 and 50 positions further: 480 facts, 60
// of which are held out.
inline void write_synthetic_graph(TemporaryFolder const& folder) {
  std::string train, valid, test;
  int const steps[] = {1, 7, 30, 50};
  for (int subject = 0; subject < 120; ++subject) {
    for (int relation = 0; relation < 4; ++relation) {
      int const turn = (subject * 4 + relation) * 37 % 480;
      std::string& split = turn < 30 ? valid : turn < 60 ? test : train;
      split += fmt::format("e{}\tgoes_on_by_{}\te{}\n", subject, steps[relation], (subject + steps[relation]) % 120);
    }
  }
  folder.write("train.txt", train);
  folder.write("valid.txt", valid);
  folder.write("test.txt", test);
}

}  // namespace gpups::test
