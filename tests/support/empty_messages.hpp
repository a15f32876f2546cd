// SPDX-License-Identifier: Apache-2.0
// An empty message of each kind.
#pragma once

#include <vector>

#include "cache/wire/message.hpp"

namespace gpups::test {

// Returns them in the order of their numbers in the protocol.
inline std::vector<cache::Message> empty_messages() {
  using namespace cache;
  std::vector<Message> all{GradientPhase{}, RefreshPhase{}, LateFetch{}, LateFetchReply{}, GatherPart{}};
  auto const add = [&](RowRequestKind kind) {
    all.insert(all.end(), {RowRequestHeader{.kind = kind}, RowReplyHeader{.kind = kind}});
  };
  for (auto const kind : {RowRequestKind::kLookup, RowRequestKind::kAssign, RowRequestKind::kErase}) add(kind);
  all.insert(all.end(), {SchemaMessage{}, LateForward{}});
  for (auto const kind : {RowRequestKind::kTake, RowRequestKind::kReturn, RowRequestKind::kWhere}) {
    add(kind);
  }
  return all;
}

}  // namespace gpups::test
