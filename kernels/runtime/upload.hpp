// SPDX-License-Identifier: Apache-2.0
// Copies of few bytes to a device, for which no thread waits.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include "gpups/array.hpp"

namespace gpups::kernels {

// Copies bytes from the host to the stream's device, on a GPU through pinned memory. `from` may change after the call.
// Queued on `stream`.
void upload_bytes(Stream& stream, void* to, void const* from, std::size_t bytes);

// The same for elements. REQUIRES: to.size() >= from.size().
template <class T>
void upload(Stream& stream, View<T> to, std::span<std::type_identity_t<T> const> from) {
  upload_bytes(stream, to.data(), from.data(), from.size_bytes());
}

}  // namespace gpups::kernels
