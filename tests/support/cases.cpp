// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cases.hpp"

namespace gpups::test {

std::span<KernelCase const> kernel_cases() {
  static std::vector<KernelCase> const all = [] {
    std::vector<KernelCase> cases;
    for (auto part :
         {finding_cases(), reading_cases(), pooling_cases(), writing_cases(), dense_cases(), dense_optimizer_cases(),
          wire_cases(), packing_cases(), sparse_cases(), rounding_cases(), sending_cases(), summing_cases(),
          residual_cases(), scoring_cases(), word_cases(), recommender_cases(), candidate_cases()}) {
      cases.insert(cases.end(), part.begin(), part.end());
    }
    return cases;
  }();
  return all;
}

}  // namespace gpups::test
