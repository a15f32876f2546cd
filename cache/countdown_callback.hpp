// SPDX-License-Identifier: Apache-2.0
// Waiting for several things, each of which calls when it is there.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

namespace gpups::cache {

// Calls `then` when it has been called itself `count` times; at once for none. One thread at a time.
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
