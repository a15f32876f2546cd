// SPDX-License-Identifier: Apache-2.0
// A callback that counts down.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

namespace gpups::cache {

// Returns a function that calls `then` at its `count`-th call. If `count` is 0, calls `then` immediately. One thread at
// a time.
inline std::function<void()> countdown_callback(std::size_t count, std::function<void()> then) {
  if (count == 0) {
    then();
    return [] {};
  }
  return [left = std::make_shared<std::size_t>(count), then = std::move(then)] {
    if (--*left == 0) then();
  };
}

}  // namespace gpups::cache
