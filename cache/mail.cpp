// SPDX-License-Identifier: Apache-2.0
#include "cache/mail.hpp"

#include <fmt/core.h>

#include "comm/peer_text.hpp"
#include "comm/wire.hpp"
#include "gpups/error.hpp"

namespace gpups::cache {
namespace {

// What bulk data of a section counts as.
TrafficKind kind_of(Section section) {
  switch (section) {
    case Section::kGradients:
    case Section::kLateKeys:
    case Section::kLateSums:
    case Section::kSightings:
      return &ByKind::gradients;
    case Section::kValues:
      return &ByKind::refreshes;
    case Section::kKeys:
      return &ByKind::intents;
    case Section::kUrgentKeys:
    case Section::kUrgentValues:
      return &ByKind::urgent;
    case Section::kRequestKeys:
    case Section::kRequestValues:
    case Section::kRequestFound:
      return &ByKind::lookups;
  }
  return &ByKind::control;
}

}  // namespace

void Mail::take_data(Stream& stream, Rank from, std::uint64_t tag, std::size_t bytes, comm::Payload::Where where,
                     std::function<void()> then) {
  messenger_.take_data(kChannel, stream, from, tag, bytes, kind_of(section_of(tag)), std::move(where), std::move(then));
}

Message read_message(Rank from, std::string_view body) {
  try {
    auto message = decode(body);
    check_fields(message);
    message.error = comm::peer_text(message.error);
    return message;
  } catch (comm::WireError const& error) {
    throw PeerError(from, fmt::format("rank {} sent what is not a message: {} (nothing it says can be trusted): check "
                                      "that all ranks run the same version",
                                      number(from), error.what()));
  }
}

}  // namespace gpups::cache
