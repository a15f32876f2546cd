// SPDX-License-Identifier: Apache-2.0
// What a rank says of itself as it joins, what keeps it out, and what rank 0 answers to all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/cluster/join.hpp"
#include "gpups/types.hpp"

namespace gpups::comm {

struct Statement {
  Rank rank{};
  std::uint32_t size = 0;
  std::string version{};
  std::vector<std::pair<std::string, std::string>> agreement{};
  Member member{};
};
Statement statement_of(JoinRequest const& request);
std::string encode(Statement const& statement);
Statement decode_statement(std::string_view body);  // throws WireError

// "process 12 on host a"
std::string who(Member const& member);

// What makes it senseless that `other` trains with `first`, rank 0, in words for all ranks; empty: nothing.
std::string disagreement(Statement const& first, Statement const& other);

// All that a rank needs to know to start.
struct Start {
  std::vector<Member> members{};
  std::uint64_t session = 0;
  std::string keys{};  // of its pairs, hidden
  std::string announcement{};
};
std::string encode(Start const& start);
Start decode_start(std::string_view body);  // throws WireError
// Whether it can be the answer to `mine`: as many ranks, and this one among them as it has said.
bool concerns(Start const& start, Statement const& mine);

}  // namespace gpups::comm
