// SPDX-License-Identifier: Apache-2.0
// A share of the host's cores. Work is split into blocks at fixed boundaries, so that no result depends on the number
// of threads.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace gpups::kernels {

// Refers to a callable for the time of a call; no allocation.
template <class Signature>
class FunctionRef;
template <class R, class... A>
class FunctionRef<R(A...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>) FunctionRef(F&& f)  // NOLINT: implicit on purpose
      : object_(const_cast<void*>(static_cast<void const*>(&f))),
        call_([](void* object, A... a) -> R { return (*static_cast<std::remove_reference_t<F>*>(object))(a...); }) {}
  R operator()(A... a) const { return call_(object_, a...); }

 private:
  void* object_;
  R (*call_)(void*, A...);
};

class Arena {
 public:
  // threads: at most this many run at once, callers included; 0 for one on each core that
  // the calling thread may run on.
  explicit Arena(int threads);
  ~Arena();
  int threads() const;
  // Calls body(block) once for each block < blocks, in any order, by any of the arena's threads; returns when all are
  // done. May be called by several threads, which share the limit.
  void blocks(std::size_t blocks, FunctionRef<void(std::size_t)> body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpups::kernels
