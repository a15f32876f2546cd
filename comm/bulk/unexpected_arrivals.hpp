// SPDX-License-Identifier: Apache-2.0
// The transfers that have arrived at a rank before it has called receive() for them, within the credits of each sender.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/bulk/flow_control.hpp"
#include "comm/ucx/active_messages.hpp"

namespace gpups::comm {

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
