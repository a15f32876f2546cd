// SPDX-License-Identifier: Apache-2.0
#include "gpups/stats.hpp"

namespace gpups {

ByKind& ByKind::operator+=(ByKind const& other) {
  for (auto const kind : {&ByKind::gradients, &ByKind::refreshes, &ByKind::intents, &ByKind::urgent, &ByKind::lookups,
                          &ByKind::reductions, &ByKind::control}) {
    this->*kind += other.*kind;
  }
  return *this;
}

Traffic& Traffic::operator+=(Traffic const& other) {
  ByKind::operator+=(other);
  messages += other.messages;
  return *this;
}

double Stats::compression() const {
  std::uint64_t const bytes = sent.bytes();
  return bytes == 0 ? 1 : static_cast<double>(bytes + spared.total()) / static_cast<double>(bytes);
}

}  // namespace gpups
