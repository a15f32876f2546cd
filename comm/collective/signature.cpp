// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/signature.hpp"

#include <fmt/core.h>

namespace gpups::comm {
namespace {

char const* elements_of(Operation operation) {
  switch (operation) {
    case Operation::kSumIntegers:
      return "integers";
    case Operation::kSumFloats:
      return "floats";
    case Operation::kSumTopK:
      return "elements of gradients";
    default:
      return "sparse floats";
  }
}

}  // namespace

char const* name_of(Operation operation) {
  return operation == Operation::kScatterSparse ? "reduce-scatter" : "allreduce";
}

std::string describe(Signature const& signature) {
  return fmt::format("sums {} {}{}{}", signature.elements, elements_of(signature.operation),
                     signature.how.empty() ? "" : " by ", signature.how);
}

}  // namespace gpups::comm
