// SPDX-License-Identifier: Apache-2.0
// One-sided access: memory of each rank into which other ranks write without its doing (puts), and notifications that
// follow puts.
//
// Puts arrive some time later, in parts and in any order, even if two puts overlap: VersionedRows detects incomplete
// rows. A notification arrives after all earlier puts of its sender, and later puts arrive after it.
//
// Puts have neither a MAC nor a checksum, since no code of the receiver handles them. Over TCP, UCX itself writes to
// the address in a packet, so a rank with a window must trust every process that can reach its ports. The group reports
// lost ranks, the window does not: puts to a lost rank never end.
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

// The window of one rank.
class Window {
 public:
  virtual ~Window() = default;
  virtual int size() const = 0;

  // Returns the memory of this rank: initially zero, aligned to 64 bytes.
  virtual std::span<std::byte> memory() = 0;

  // Starts to write `data` at `offset` of the memory of `to`; the bytes are copied. Returns false if too many puts are
  // pending: call progress() and try again. REQUIRES: offset and size are multiples of 8, and the range is within the
  // memory.
  virtual bool put(Rank to, std::size_t offset, std::span<std::byte const> data) = 0;
  // Sets notified(this rank) of `to` to `value`, after all earlier puts to `to` have arrived. Returns false as put().
  virtual bool notify(Rank to, std::uint64_t value) = 0;
  // Returns the last value from `from`; 0 if there is none. All puts of `from` before it can be read.
  virtual std::uint64_t notified(Rank from) const = 0;

  // Makes progress for puts of this rank and, on some networks, for puts of other ranks to it. Returns whether anything
  // was done.
  virtual bool progress() = 0;
  // Returns whether all puts and notifications of this rank have arrived.
  virtual bool idle() const = 0;
};

// Creates the windows of ranks that are threads of one process, in rank order, with `bytes` bytes each.
std::vector<std::unique_ptr<Window>> make_local_windows(int ranks, std::size_t bytes);

// Returns the texts of all ranks, in rank order; blocks until all ranks have called it.
using Allgather = std::function<std::vector<std::string>(std::string const& mine)>;
// Creates the window of this rank over UCX. Collective, with the same size on all ranks. Throws Error if UCX fails or
// sizes differ.
std::unique_ptr<Window> make_ucx_window(Rank me, std::size_t bytes, Allgather const& allgather);

// A kind of window, for conformance tests.
struct WindowFactory {
  std::string_view name;
  std::vector<std::unique_ptr<Window>> (*make)(int ranks, std::size_t bytes);
};
std::span<WindowFactory const> all_windows();

}  // namespace gpups::comm
