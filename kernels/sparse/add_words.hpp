// SPDX-License-Identifier: Apache-2.0
// Adds an array of 64-bit integers to another. Moves 24 bytes per element.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

// into[i] += words[i], modulo 2^64.
struct AddWords {
  View<std::int64_t> into;         // (n)
  View<std::int64_t const> words;  // (n)
};
void add_words(Stream& stream, AddWords const& arguments);

}  // namespace gpups::kernels
