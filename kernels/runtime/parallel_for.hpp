// SPDX-License-Identifier: Apache-2.0
// Runs independent pieces of work, such as microbatches, on the cores of a stream.
#pragma once

#include <cstddef>

#include "gpups/stream.hpp"
#include "kernels/runtime/arena.hpp"

namespace gpups::kernels {

// Calls body(part, i) once for each i < n, and returns when all calls have returned. On the host the calls run in
// parallel. Each has a stream of one thread, so that kernels that are called with `part` run in the body's thread. On a
// GPU the calls run one after another, with `stream` itself. If a body throws, the other calls are still made; then the
// exception of the smallest i is rethrown.
void parallel_for(Stream& stream, std::size_t n, FunctionRef<void(Stream& part, std::size_t i)> body);

}  // namespace gpups::kernels
