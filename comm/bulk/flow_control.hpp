// SPDX-License-Identifier: Apache-2.0
// Flow control of transfers: bounds the memory that a sender can use at a slow receiver.
//
// Eager transfers occupy memory of the receiver until it receives them: above a bound in bytes, further ones use
// rendezvous. Announcements of rendezvous transfers occupy a little memory each: above a bound in number, further
// transfers are not announced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/ucx/active_messages.hpp"

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

// A transfer that has arrived. `copy` has the bytes of an eager one.
struct UnexpectedArrival {
  AmArrival handle;
  std::string copy;
};

// Used with the lock of ActiveMessages held.
class UnexpectedArrivals {
 public:
  using Id = std::pair<Rank, std::uint64_t>;  // the sender, and the tag

  explicit UnexpectedArrivals(std::size_t ranks) : amounts_(ranks) {}

  // Keeps an arrival, and copies eager data. Returns why its sender breaks the protocol, and keeps nothing; null if the
  // arrival is valid.
  char const* add(Id const& id, AmArrival const& arrival) {
    Amount& amount = amounts_[number(id.first)];
    bool const is_copied = arrival.header.kind == AmKind::kData && !arrival.remote;
    std::size_t const copied = is_copied ? arrival.bytes : 0;
    if (arrivals_.contains(id)) return "it sent the same data twice";
    if (amount.count == kCountMax || amount.bytes + copied > kBytesMax) return "it sent more than its credits allow";
    amount.add(copied);
    std::string copy;
    if (copied > 0) copy.assign(static_cast<char const*>(arrival.data), copied);
    arrivals_.emplace(id, UnexpectedArrival{arrival, std::move(copy)});
    return nullptr;
  }
  // Removes and returns an arrival, if there is one.
  std::optional<UnexpectedArrival> take(Id const& id) {
    auto node = arrivals_.extract(id);
    if (node.empty()) return std::nullopt;
    Amount& amount = amounts_[number(id.first)];
    --amount.count;
    amount.bytes -= node.mapped().copy.size();
    return std::move(node.mapped());
  }
  template <class F>
  void each(F f) const {
    for (auto const& [id, arrival] : arrivals_) f(arrival);
  }

 private:
  // Twice the credits of a sender.
  static constexpr std::size_t kCountMax = 2 * kTransfersAheadMax;
  static constexpr std::size_t kBytesMax = 2 * kEagerBytesAheadMax;

  std::map<Id, UnexpectedArrival> arrivals_;
  std::vector<Amount> amounts_;  // by sender
};

}  // namespace gpups::comm
