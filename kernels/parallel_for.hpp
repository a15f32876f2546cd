// SPDX-License-Identifier: Apache-2.0
// Pieces of work that are independent of each other, such as microbatches, on the cores of a stream.
#pragma once

#include <cstddef>

#include "gpups/stream.hpp"
#include "kernels/arena.hpp"

namespace gpups::kernels {

// Calls body(part, i) once for each i < n and returns when all are done. On the host they run side by side, each with a
// stream of one thread, so that kernels called with `part` run in the body's thread; on a GPU one after the other, with
// `stream` itself. Where bodies throw, the others run all the same, and the exception of the smallest i is thrown.
void parallel_for(Stream& stream, std::size_t n, FunctionRef<void(Stream& part, std::size_t i)> body);

}  // namespace gpups::kernels
