// SPDX-License-Identifier: Apache-2.0
// What comes over the connection between a rank and rank 0, from a stranger or from a process that knows the token: it
// is rejected, or is written as just these bytes again; nothing that is derived from it crashes or takes much memory.
#include <sys/socket.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/bootstrap/connection.hpp"
#include "comm/bootstrap/core_affinity.hpp"
#include "comm/bootstrap/handshake.hpp"
#include "comm/bootstrap/membership.hpp"
#include "comm/bootstrap/rank_info.hpp"
#include "comm/wire.hpp"
#include "gpups/error.hpp"
#include "tests/fuzz/script.hpp"

namespace gpups::fuzz {
namespace {

using namespace gpups::comm;

void require(bool holds) {
  if (!holds) std::abort();
}

// Throwing Error is as good as an answer.
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

void greet(std::string_view bytes) {
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    bool const wrong = !handshake_error(bytes.substr(0, size)).empty();
    require(!wrong || !handshake_error(bytes).empty());  // more does not put it right
  }
}

// Nobody without the key makes a frame, however it arrives.
void hear_stranger(Script& script) {
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

// What was put comes out, in order, unless something was changed on its way.
void hear_member(Script& script) {
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

// -- what is in them --

std::vector<int> check_cores(std::string const& text) {
  auto const cores = parse_core_list(text);
  require(cores.size() <= 65536 && (cores.empty() || cores.back() < 65536));
  require(std::is_sorted(cores.begin(), cores.end()) && parse_core_list(format_core_list(cores)) == cores);
  return cores;
}

RankInfo const& of_rank_zero() {
  static RankInfo const statement{.rank = Rank{0},
                                  .size = 4,
                                  .version = "1",
                                  .must_match = {{"a", "b"}, {"c", "d"}},
                                  .member = {.host = "h", .machine = "m", .pid = 1, .address = "x", .cores = "0-1"}};
  return statement;
}

void hear_statement(std::string_view body) {
  auto const said = decode_rank_info(body);
  require(encode(said) == body);
  bool const agrees = mismatch_of(of_rank_zero(), said).empty();
  require(!agrees || number(said.rank) < of_rank_zero().size);
  require(describe(said.member).size() < 200);
  check_cores(said.member.cores);
}

void hear_start(std::string_view body) {
  auto const start = decode_start(body);
  require(encode(start) == body);
  (void)matches(start, of_rank_zero());
  constexpr std::size_t kMembersMax = 16;  // each may have as many cores as there are
  std::vector<std::vector<int>> allowed;
  for (auto const& member : start.members) {
    if (allowed.size() < kMembersMax) allowed.push_back(check_cores(member.cores));
  }
  std::vector<std::vector<int>> near(allowed.size());
  for (std::size_t i = 0; i < near.size(); i += 2) near[i] = {0, 3, static_cast<int>(i)};
  require(partition_cores(allowed, near).size() == allowed.size());
}

void hear_notices(Script& script) {
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
  require(events <= 2 * (kSize - 1));  // of each, that it has left, and that it is lost
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
      greet(rest);
      break;
    case 1:
      hear_stranger(script);
      break;
    case 2:
      hear_member(script);
      break;
    case 3:
      attempt([&] { hear_statement(rest); });
      break;
    case 4:
      attempt([&] { hear_start(rest); });
      break;
    case 5:
      hear_notices(script);
      break;
    default:
      attempt([&] { check_cores(std::string(rest)); });
  }
  return 0;
}
