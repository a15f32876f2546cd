// SPDX-License-Identifier: Apache-2.0
#include "gpups/stats.hpp"

namespace gpups {

TrafficByKind& TrafficByKind::operator+=(TrafficByKind const& other) {
  for (auto const kind :
       {&TrafficByKind::gradients, &TrafficByKind::refreshes, &TrafficByKind::intents, &TrafficByKind::late_fetches,
        &TrafficByKind::moves, &TrafficByKind::lookups, &TrafficByKind::allreduces, &TrafficByKind::control}) {
    this->*kind += other.*kind;
  }
  return *this;
}

Traffic& Traffic::operator+=(Traffic const& other) {
  TrafficByKind::operator+=(other);
  messages += other.messages;
  return *this;
}

double Stats::compression_ratio() const {
  std::uint64_t const bytes = sent.bytes();
  return bytes == 0 ? 1 : static_cast<double>(bytes + saved_bytes.total()) / static_cast<double>(bytes);
}

}  // namespace gpups
