// SPDX-License-Identifier: Apache-2.0
// What a rank says of itself as it joins, what keeps it out, and what rank 0 answers to all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/bootstrap/join.hpp"
#include "gpups/types.hpp"

namespace gpups::comm {

struct RankInfo {
  Rank rank{};
  std::uint32_t size = 0;
  std::string version{};
  std::vector<std::pair<std::string, std::string>> must_match{};
  ProcessInfo member{};
};
RankInfo rank_info_of(JoinRequest const& request);
std::string encode(RankInfo const& info);
RankInfo decode_rank_info(std::string_view body);  // throws WireError

// "process 12 on host a"
std::string describe(ProcessInfo const& member);

// What makes it senseless that `other` trains with `first`, rank 0, in words for all ranks; empty: nothing.
std::string mismatch_of(RankInfo const& first, RankInfo const& other);

// All that a rank needs to know to start.
struct StartMessage {
  std::vector<ProcessInfo> members{};
  std::uint64_t session = 0;
  std::string keys{};  // of its pairs, hidden
  std::string broadcast_data{};
};
std::string encode(StartMessage const& start);
StartMessage decode_start(std::string_view body);  // throws WireError
// Whether it can be the answer to `mine`: as many ranks, and this one among them as it has said.
bool matches(StartMessage const& start, RankInfo const& mine);

}  // namespace gpups::comm
