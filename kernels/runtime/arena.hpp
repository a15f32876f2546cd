// SPDX-License-Identifier: Apache-2.0
// A share of the host's cores on which blocks of work run in parallel. Callers cut work at fixed boundaries, so that no
// result depends on the number of threads. And the same for independent pieces of work, such as microbatches.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

#include "gpups/stream.hpp"

namespace gpups::kernels {

// A reference to a callable, without allocation. The callable must outlive all calls.
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

// Runs blocks of work on a limited number of threads.
class Arena {
 public:
  // threads: the most threads that run blocks at once, the callers included; 0: one for each core that the calling
  // thread may run on.
  explicit Arena(int threads);
  ~Arena();
  int threads() const;
  // Calls body(block) once for each block < blocks, in any order and on any of the arena's threads. Returns when all
  // calls have returned. Several threads may call this function at once; they share the limit of threads.
  void blocks(std::size_t blocks, FunctionRef<void(std::size_t)> body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Returns whether a result of `bytes` bytes is too large for the caches of the arena's threads.
bool exceeds_caches(Arena const& arena, std::size_t bytes);

// Calls body(part, i) once for each i < n, and returns when all calls have returned. On the host the calls run in
// parallel. Each has a stream of one thread, so that kernels that are called with `part` run in the body's thread. On a
// GPU the calls run one after another, with `stream` itself. If a body throws, the other calls are still made; then the
// exception of the smallest i is rethrown.
void parallel_for(Stream& stream, std::size_t n, FunctionRef<void(Stream& part, std::size_t i)> body);

}  // namespace gpups::kernels
