// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/store_messenger.hpp"

#include <fmt/core.h>

#include "comm/base/peer_error.hpp"
#include "comm/base/serialization.hpp"
#include "gpups/error.hpp"
#include "kernels/runtime/memory_scope.hpp"

namespace gpups::cache {
namespace {

// Returns the kind of traffic as which the data of a section are counted.
TrafficKind kind_of(std::uint64_t tag) {
  if (is_of_moved_rows(tag)) return &TrafficByKind::moves;
  switch (section_of(tag)) {
    case Section::kGradients:
    case Section::kFlushedKeys:
    case Section::kFlushedSums:
    case Section::kGradientBody:
      return &TrafficByKind::gradients;
    case Section::kValues:
      return &TrafficByKind::refreshes;
    case Section::kKeys:
    case Section::kForwardKeys:
    case Section::kRoutes:
      return &TrafficByKind::intents;
    case Section::kLateFetchKeys:
    case Section::kLateFetchValues:
    case Section::kLateForwardKeys:
    case Section::kLateRoutes:
      return &TrafficByKind::late_fetches;
    case Section::kRequestKeys:
    case Section::kRequestValues:
    case Section::kRequestFound:
    case Section::kRequestWords:
      return &TrafficByKind::lookups;
  }
  return &TrafficByKind::control;
}

}  // namespace

void StoreMessenger::receive_data(Stream& stream, Rank from, std::uint64_t tag, std::size_t bytes,
                                  comm::BulkTransport::Allocate allocate, std::function<void()> then) {
  auto const in_scope = [this](auto const& call) {
    kernels::MemoryScope const scope(stream_);
    return call();
  };
  messenger_.receive_data(
      kChannel, stream, from, tag, bytes, kind_of(tag),
      [in_scope, allocate = std::move(allocate)] { return in_scope(allocate); },
      [in_scope, then = std::move(then)] { in_scope(then); });
}

Message read_message(Rank from, std::string_view body) {
  try {
    auto message = decode(body);
    check_fields(message);
    if (auto* const phase = std::get_if<GradientPhase>(&message)) {
      phase->report.rejection = comm::peer_text(phase->report.rejection);
    }
    return message;
  } catch (comm::SerializationError const& error) {
    throw PeerError(from,
                    fmt::format("rank {} sent an invalid message: {} (it cannot be used): check that all ranks run "
                                "the same version",
                                number(from), error.what()));
  }
}

void throw_peer_error(Rank peer, Rank me, std::string const& what) {
  throw PeerError(peer, fmt::format("rank {} {} (rank {} cannot continue): check that all ranks run the same "
                                    "program and configuration",
                                    number(peer), what, number(me)));
}

}  // namespace gpups::cache
