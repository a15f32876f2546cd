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

inline constexpr std::size_t kOffersMax = std::size_t{1} << 14;       // that one rank has not yet taken from another
inline constexpr std::size_t kAheadBytesMax = std::size_t{64} << 20;  // of those that went at once

struct Amount {
  std::size_t count = 0, bytes = 0;
  void add(std::size_t of_bytes) { ++count, bytes += of_bytes; }
};

// What a sender has under way to one receiver.
class Ahead {
 public:
  bool may_offer() const { return at_once_.count + waiting_ < kOffersMax; }
  bool may_go_at_once(std::size_t bytes) const { return at_once_.bytes + bytes <= kAheadBytesMax; }

  void goes_at_once(std::size_t bytes) { at_once_.add(bytes); }
  void waits() { ++waiting_; }
  void waits_no_more() { --waiting_; }
  // The receiver has taken some of those that went at once. False: more than there were.
  bool taken(Amount const& amount) {
    if (amount.count > at_once_.count || amount.bytes > at_once_.bytes) return false;
    at_once_.count -= amount.count;
    at_once_.bytes -= amount.bytes;
    return true;
  }

 private:
  Amount at_once_;
  std::size_t waiting_ = 0;
};

// What a receiver has taken of one sender, and has not told it.
class Untold {
 public:
  void taken(std::size_t bytes) { amount_.add(bytes); }
  bool is_worth_telling() const { return amount_.count >= kOffersMax / 4 || amount_.bytes >= kAheadBytesMax / 4; }
  Amount tell() { return std::exchange(amount_, {}); }

 private:
  Amount amount_;
};

}  // namespace gpups::comm
