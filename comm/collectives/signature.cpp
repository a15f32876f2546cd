// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/signature.hpp"

#include <fmt/core.h>

namespace gpups::comm {
namespace {

char const* elements_of(CollectiveKind operation) {
  switch (operation) {
    case CollectiveKind::kSumIntegers:
      return "integers";
    case CollectiveKind::kSumFloats:
      return "floats";
    case CollectiveKind::kSumTopK:
      return "elements of gradients";
    default:
      return "sparse floats";
  }
}

}  // namespace

char const* name_of(CollectiveKind operation) {
  return operation == CollectiveKind::kScatterSparse ? "reduce-scatter" : "allreduce";
}

std::string describe(Signature const& signature) {
  return fmt::format("sums {} {}{}{}", signature.elements, elements_of(signature.operation),
                     signature.how.empty() ? "" : " by ", signature.how);
}

}  // namespace gpups::comm
