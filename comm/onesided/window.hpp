// SPDX-License-Identifier: Apache-2.0
// Memory of each rank that all others write into without its doing: one-sided puts, and notifications that follow them.
//
// What has been put is there at some time, in parts and in any order, also where two puts overlap: VersionedRows tells
// whole rows. What is put after a notification comes after what was put before it, and who sees the notification sees
// all of that.
//
// Puts are not sealed, and have no checksum: nobody looks at them where they arrive. Over TCP, UCX itself writes where
// a packet says; whoever opens a window trusts all that reaches its ports. That a rank is lost is told by the group,
// not by its window: puts to it never end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gpups/types.hpp"

namespace gpups::comm {

class Window {
 public:
  virtual ~Window() = default;
  virtual int size() const = 0;

  // This rank's memory: zero at first, and aligned to 64 bytes.
  virtual std::span<std::byte> memory() = 0;

  // Begins to write `data` at `offset` of `to`'s memory; the bytes are copied. False: no room now, call progress() and
  // try again. REQUIRES: offset, and the number of bytes, are multiples of 8; all lies within the memory.
  virtual bool put(Rank to, std::size_t offset, std::span<std::byte const> data) = 0;
  // Once all that has been put to `to` is there, its notified(this rank) becomes `value`. False as above.
  virtual bool notify(Rank to, std::uint64_t value) = 0;
  // The last value that has come from `from`; 0: none. What it had put before can be read.
  virtual std::uint64_t notified(Rank from) const = 0;

  // Lets puts go on, those of others here too: some networks need it. True where something was moved.
  virtual bool progress() = 0;
  // All that this rank has put, and its notifications, are there.
  virtual bool idle() const = 0;
};

// Ends of one process, in rank order, each with so much memory.
std::vector<std::unique_ptr<Window>> make_local_windows(int ranks, std::size_t bytes);

// What each rank says, in rank order; blocks until all have spoken.
using Allgather = std::function<std::vector<std::string>(std::string const& mine)>;
// This rank's end, over UCX; all ranks call it with the same size. Throws Error where UCX cannot.
std::unique_ptr<Window> make_ucx_window(Rank me, std::size_t bytes, Allgather const& allgather);

// All kinds, for the tests that each has to pass.
struct WindowFactory {
  std::string_view name;
  std::vector<std::unique_ptr<Window>> (*make)(int ranks, std::size_t bytes);
};
std::span<WindowFactory const> all_windows();

}  // namespace gpups::comm
