// SPDX-License-Identifier: Apache-2.0
// A visitor for std::visit that combines one function for each alternative.
#pragma once

namespace gpups::kernels {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;  // clang 14 needs this deduction guide

}  // namespace gpups::kernels
