// SPDX-License-Identifier: Apache-2.0
// Flow control of transfers: bounds the memory that a sender can use at a slow receiver.
//
// Eager transfers occupy memory of the receiver until it receives them: above a bound in bytes, further ones use
// rendezvous. Announcements of rendezvous transfers occupy a little memory each: above a bound in number, further
// transfers are not announced.
#pragma once

#include <cstddef>
#include <utility>

namespace gpups::comm {

inline constexpr std::size_t kTransfersAheadMax = std::size_t{1} << 14;    // in flight from one rank to another
inline constexpr std::size_t kEagerBytesAheadMax = std::size_t{64} << 20;  // of eager transfers among them

// A number of transfers, and their bytes.
struct Amount {
  std::size_t count = 0, bytes = 0;
  void add(std::size_t of_bytes) { ++count, bytes += of_bytes; }
};

// The credits of a sender to one receiver.
class SendCredits {
 public:
  bool may_announce() const { return eager_.count + rendezvous_ < kTransfersAheadMax; }
  bool may_send_eager(std::size_t bytes) const { return eager_.bytes + bytes <= kEagerBytesAheadMax; }

  void add_eager(std::size_t bytes) { eager_.add(bytes); }
  void add_rendezvous() { ++rendezvous_; }
  void remove_rendezvous() { --rendezvous_; }
  // Handles a credit for eager transfers. Returns false if it is for more than was sent.
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

// The credits that a receiver has not yet returned to one sender.
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
