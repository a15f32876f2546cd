// SPDX-License-Identifier: Apache-2.0
// The messages of the join: what a rank sends about itself, why rank 0 rejects it, and what rank 0 sends to all ranks
// at the start.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/bootstrap/join.hpp"
#include "gpups/types.hpp"

namespace gpups::comm {

// The first message of a rank to rank 0.
struct RankInfo {
  Rank rank{};
  std::uint32_t size = 0;
  std::string group{};  // the name of the group that it joins
  std::string version{};
  std::vector<std::pair<std::string, std::string>> must_match{};
  ProcessInfo member{};
};
RankInfo rank_info_of(JoinRequest const& request);
std::string encode(RankInfo const& info);
RankInfo decode_rank_info(std::string_view body);  // throws SerializationError

// Returns text about a name of a group, such as "the group 'a'", for errors.
std::string group_text(std::string_view name);

// Returns text such as "process 12 on host a".
std::string describe(ProcessInfo const& member);

// Returns why `other` cannot be in one job with `first`, which is rank 0, as an error text for all ranks; empty if it
// can.
std::string mismatch_of(RankInfo const& first, RankInfo const& other);

// The last message of rank 0 to a rank: what it needs in order to start.
struct StartMessage {
  std::vector<ProcessInfo> members{};
  std::uint64_t session = 0;
  std::string keys{};  // the pair keys of the receiver, encrypted
  std::string broadcast_data{};
};
std::string encode(StartMessage const& start);
StartMessage decode_start(std::string_view body);  // throws SerializationError
// Returns whether `start` fits `mine`: it has as many ranks, and its entry for this rank equals what this rank has
// sent.
bool matches(StartMessage const& start, RankInfo const& mine);

}  // namespace gpups::comm
