// SPDX-License-Identifier: Apache-2.0
// Bytes that arrive on the connection between a rank and rank 0, from a foreign process or from one that has the token:
// they are rejected, or are encoded as the same bytes again. No code that uses them crashes or takes much memory.
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/base/serialization.hpp"
#include "comm/bootstrap/connection.hpp"
#include "comm/bootstrap/core_affinity.hpp"
#include "comm/bootstrap/membership.hpp"
#include "comm/bootstrap/rank_info.hpp"
#include "gpups/error.hpp"
#include "tests/fuzz/script.hpp"

namespace gpups::fuzz {
namespace {

using namespace gpups::comm;

void require(bool holds) {
  if (!holds) std::abort();
}

// Calls `call`, which may throw Error.
template <class Call>
void attempt(Call const& call) {
  try {
    call();
  } catch (Error const&) {
  }
}

struct Ends {
  Socket mine, other;
};
Ends connected() {
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
  return {Socket(ends[0]), Socket(ends[1])};
}

// -- frames --

void check_handshake(std::string_view bytes) {
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    bool const wrong = !handshake_error(bytes.substr(0, size)).empty();
    require(!wrong || !handshake_error(bytes).empty());  // more bytes do not make it valid
  }
}

// A sender without the key cannot make a valid frame, however its bytes arrive.
void receive_without_key(Script& script) {
  Ends ends = connected();
  Connection link(std::move(ends.mine), script.byte() % 2 == 0 ? ConnectionSide::kRankZero : ConnectionSide::kOther);
  link.set_key("a key");
  link.set_body_bytes_max(64);
  attempt([&] {
    while (!script.over()) {
      std::string const some = script.text(80);
      require(send(ends.other.fd(), some.data(), some.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(some.size()));
      link.exchange();
      link.peek_unauthenticated();
      require(!link.next());
    }
  });
}

// Frames that are put are received, in order.
void receive_with_key(Script& script) {
  Ends ends = connected();
  Connection link(std::move(ends.mine), ConnectionSide::kRankZero), peer(std::move(ends.other), ConnectionSide::kOther);
  link.set_key("a key");
  peer.set_key("a key");
  while (!script.over()) {
    auto const kind = static_cast<FrameKind>(script.byte());
    std::string const body = script.text(255);
    require(peer.put(kind, body));
    peer.exchange();
    link.exchange();
    auto const frame = link.next();
    require(frame && frame->kind == kind && frame->body == body);
  }
}

// -- bodies of frames --

std::vector<int> check_cores(std::string const& text) {
  auto const cores = parse_core_list(text);
  require(cores.size() <= 65536 && (cores.empty() || cores.back() < 65536));
  require(std::is_sorted(cores.begin(), cores.end()) && parse_core_list(format_core_list(cores)) == cores);
  return cores;
}

RankInfo const& rank_info_of_rank_zero() {
  static RankInfo const statement{.rank = Rank{0},
                                  .size = 4,
                                  .version = "1",
                                  .must_match = {{"a", "b"}, {"c", "d"}},
                                  .member = {.host = "h", .machine = "m", .pid = 1, .address = "x", .cores = "0-1"}};
  return statement;
}

void check_rank_info(std::string_view body) {
  auto const info = decode_rank_info(body);
  require(encode(info) == body);
  bool const agrees = mismatch_of(rank_info_of_rank_zero(), info).empty();
  require(!agrees || number(info.rank) < rank_info_of_rank_zero().size);
  require(describe(info.member).size() < 200);
  check_cores(info.member.cores);
}

void check_start(std::string_view body) {
  auto const start = decode_start(body);
  require(encode(start) == body);
  (void)matches(start, rank_info_of_rank_zero());
  constexpr std::size_t kMembersMax = 16;  // each may have the largest number of cores
  std::vector<std::vector<int>> allowed;
  for (auto const& member : start.members) {
    if (allowed.size() < kMembersMax) allowed.push_back(check_cores(member.cores));
  }
  std::vector<std::vector<int>> near(allowed.size());
  for (std::size_t i = 0; i < near.size(); i += 2) near[i] = {0, 3, static_cast<int>(i)};
  require(partition_cores(allowed, near).size() == allowed.size());
}

void check_membership_updates(Script& script) {
  constexpr std::uint32_t kSize = 4;
  Membership membership(Rank{script.byte() % kSize}, kSize);
  std::size_t events = 0;
  while (!script.over()) {
    attempt([&] {
      std::string const body = script.text(80);
      auto const notice = decode_membership_update(body);
      require(encode(notice) == body);
      if (membership.is_valid(notice)) membership.apply(notice);
      events += membership.take_changes().size();
    });
  }
  require(events <= 2 * (kSize - 1));  // two for each other rank: it has left, and it is lost
}

}  // namespace
}  // namespace gpups::fuzz

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace gpups::fuzz;
  if (size == 0) return 0;
  Script script(data + 1, size - 1);
  std::string_view const rest(reinterpret_cast<char const*>(data) + 1, size - 1);
  switch (data[0] % 7) {
    case 0:
      check_handshake(rest);
      break;
    case 1:
      receive_without_key(script);
      break;
    case 2:
      receive_with_key(script);
      break;
    case 3:
      attempt([&] { check_rank_info(rest); });
      break;
    case 4:
      attempt([&] { check_start(rest); });
      break;
    case 5:
      check_membership_updates(script);
      break;
    default:
      attempt([&] { check_cores(std::string(rest)); });
  }
  return 0;
}
