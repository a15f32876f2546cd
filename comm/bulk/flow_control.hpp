// SPDX-License-Identifier: Apache-2.0
// How far a payload's sender may be ahead of a receiver that is slow: what is sent before it is wanted takes memory
// there.
//
// Data that go at once lie in the receiver's memory until they are wanted: above a bound, further ones wait with their
// sender instead. Those that wait there take a note each: above another bound they are not even offered.
#pragma once

#include <cstddef>
#include <utility>

namespace gpups::comm {

inline constexpr std::size_t kTransfersAheadMax = std::size_t{1} << 14;  // that one rank has not yet taken from another
inline constexpr std::size_t kEagerBytesAheadMax = std::size_t{64} << 20;  // of those that went at once

struct Amount {
  std::size_t count = 0, bytes = 0;
  void add(std::size_t of_bytes) { ++count, bytes += of_bytes; }
};

// What a sender has under way to one receiver.
class SendCredits {
 public:
  bool may_announce() const { return eager_.count + rendezvous_ < kTransfersAheadMax; }
  bool may_send_eager(std::size_t bytes) const { return eager_.bytes + bytes <= kEagerBytesAheadMax; }

  void add_eager(std::size_t bytes) { eager_.add(bytes); }
  void add_rendezvous() { ++rendezvous_; }
  void remove_rendezvous() { --rendezvous_; }
  // The receiver has taken some of those that went at once. False: more than there were.
  bool acknowledge(Amount const& amount) {
    if (amount.count > eager_.count || amount.bytes > eager_.bytes) return false;
    eager_.count -= amount.count;
    eager_.bytes -= amount.bytes;
    return true;
  }

 private:
  Amount eager_;
  std::size_t rendezvous_ = 0;
};

// What a receiver has taken of one sender, and has not told it.
class ConsumedCredits {
 public:
  void add(std::size_t bytes) { amount_.add(bytes); }
  bool should_return() const {
    return amount_.count >= kTransfersAheadMax / 4 || amount_.bytes >= kEagerBytesAheadMax / 4;
  }
  Amount take() { return std::exchange(amount_, {}); }

 private:
  Amount amount_;
};

}  // namespace gpups::comm
