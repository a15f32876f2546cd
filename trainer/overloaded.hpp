// SPDX-License-Identifier: Apache-2.0
// A visitor of std::variant that is made of one function for each alternative.
#pragma once

namespace gpups::trainer {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;  // clang 14 does not find it alone

}  // namespace gpups::trainer
