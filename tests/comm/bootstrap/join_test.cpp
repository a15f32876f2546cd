// SPDX-License-Identifier: Apache-2.0
// Joining: ranks of one job start with the same data, and wrong requests are rejected with the same text on all ranks.
#include "comm/bootstrap/join.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "comm/base/serialization.hpp"
#include "comm/bootstrap/connection.hpp"
#include "comm/bootstrap/pair_keys.hpp"
#include "comm/bootstrap/rank_info.hpp"
#include "comm/bootstrap/socket.hpp"
#include "tests/comm/bootstrap/join_fixture.hpp"
#include "tests/support/expect_error.hpp"

namespace gpups::test::join_test {
namespace {

using namespace gpups::comm;
using testing::HasSubstr;
using testing::Not;

TEST(Join, AllRanksGetTheSameResult) {
  constexpr int kRanks = 5;
  auto const outcomes = join_all(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    JoinResult const& joined = outcomes[static_cast<std::size_t>(rank)].joined;
    ASSERT_EQ(outcomes[static_cast<std::size_t>(rank)].error, "");
    EXPECT_EQ(joined.rank, Rank{static_cast<std::uint32_t>(rank)});
    EXPECT_EQ(joined.broadcast_data, "data of rank 0");
    EXPECT_EQ(joined.session, outcomes[0].joined.session);
    ASSERT_EQ(joined.members.size(), 5U);
    for (int of = 0; of < kRanks; ++of) {
      EXPECT_EQ(joined.members[static_cast<std::size_t>(of)], request_of(of, kRanks, 1).mine);
    }
  }
  EXPECT_NE(outcomes[0].joined.session, join_all(2)[0].joined.session);
}

TEST(Join, EachPairGetsItsOwnKey) {
  constexpr std::size_t kRanks = 4;
  auto const outcomes = join_all(kRanks);
  std::set<HashKey> different;
  for (std::size_t a = 0; a < kRanks; ++a) {
    ASSERT_EQ(outcomes[a].joined.keys.size(), kRanks);
    for (std::size_t b = 0; b <= a; ++b) {
      EXPECT_EQ(outcomes[a].joined.keys[b], outcomes[b].joined.keys[a]);
      EXPECT_TRUE(different.insert(outcomes[a].joined.keys[b]).second);
    }
  }
  EXPECT_FALSE(different.contains(join_all(2)[0].joined.keys[1]));
}

TEST(PairKeys, AreEncryptedWithSessionKey) {
  auto const keys = pair_keys(random_key(), Rank{1}, 5);
  std::string const hidden = encrypt_keys("session", keys);
  EXPECT_EQ(decrypt_keys("session", hidden), keys);
  EXPECT_NE(decrypt_keys("another", hidden), keys);
  for (HashKey const& key : keys) {
    EXPECT_THAT(hidden, Not(HasSubstr(std::string(reinterpret_cast<char const*>(key.data()), sizeof key))));
  }
  EXPECT_THROW(decrypt_keys("session", hidden.substr(1)), SerializationError);
  EXPECT_THROW(decrypt_keys("session", ""), SerializationError);
}

TEST(Join, NeedsNoTokenOnLoopback) {
  auto const outcomes = join_all(3, [](int, JoinRequest& request) { request.launch.token = ""; });
  for (Outcome const& outcome : outcomes) EXPECT_EQ(outcome.error, "");
}

TEST(Join, FindsRankZeroByHostName) {
  char name[256] = {};
  ASSERT_EQ(gethostname(name, sizeof name - 1), 0);
  if (!wait_resolve(name, 1).error.empty()) GTEST_SKIP() << "the name of this machine cannot be resolved";
  auto const outcomes = join_all(2, [&](int, JoinRequest& request) {
    request.launch.token = "";
    request.launch.hosts = {name};
  });
  for (Outcome const& outcome : outcomes) EXPECT_EQ(outcome.error, "");
}

TEST(Join, RankZeroMayStartLast) {
  int const port = free_port();
  auto one = start_join(request_of(1, 2, port));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // so that at least one connection is refused
  auto zero = start_join(request_of(0, 2, port));
  EXPECT_EQ(zero.get().error, "");
  EXPECT_EQ(one.get().error, "");
}

JoinRequest request_of_group(int rank, int size, int port, std::string const& group) {
  JoinRequest request = request_of(rank, size, port);
  request.group = group;
  request.broadcast_data = "data of " + group;
  return request;
}

TEST(Join, GroupsOfAJobFollowEachOther) {
  constexpr int kRanks = 3, kGroups = 10;
  int const port = free_port();
  std::vector<std::future<std::vector<std::uint64_t>>> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.push_back(std::async(std::launch::async, [=] {
      std::vector<std::unique_ptr<FailureDetector>> joined;  // a rank stays in all its groups
      std::vector<std::uint64_t> sessions;
      for (int group = 0; group < kGroups; ++group) {
        JoinResult one = wait_join(request_of(rank, kRanks, port));
        sessions.push_back(one.session);
        joined.push_back(std::move(one.failure_detector));
      }
      return sessions;
    }));
  }
  auto const sessions = ranks[0].get();
  for (int rank = 1; rank < kRanks; ++rank) EXPECT_EQ(ranks[static_cast<std::size_t>(rank)].get(), sessions);
  EXPECT_EQ(std::set<std::uint64_t>(sessions.begin(), sessions.end()).size(), std::size_t{kGroups});
}

TEST(Join, GroupsOfOtherNamesDoNotMeet) {
  constexpr int kRanks = 3, kGroups = 4;
  int const port = free_port();
  std::vector<std::future<Outcome>> running;
  for (int rank = 0; rank < kRanks; ++rank) {
    for (int i = 0; i < kGroups; ++i) {  // each rank starts with another group
      running.push_back(start_join(request_of_group(rank, kRanks, port, std::to_string((rank + i) % kGroups))));
    }
  }
  for (int rank = 0; rank < kRanks; ++rank) {
    for (int i = 0; i < kGroups; ++i) {
      Outcome const outcome = running[static_cast<std::size_t>(rank * kGroups + i)].get();
      EXPECT_EQ(outcome.error, "");
      EXPECT_EQ(outcome.joined.broadcast_data, "data of " + std::to_string((rank + i) % kGroups));
    }
  }
}

TEST(Join, ErrorNamesGroupsThatDoNotMeet) {
  int const port = free_port();
  auto request = request_of_group(0, 2, port, "");
  request.timeout_s = 2;
  auto zero = start_join(request);
  request = request_of_group(1, 2, port, "dense layers");
  request.timeout_s = 1;
  EXPECT_THAT(start_join(request).get().error,
              HasSubstr("rank 0 joins the group without a name and not the group 'dense layers'"));
  EXPECT_THAT(zero.get().error,
              AllOf(HasSubstr("rank 1 of 2 did not join within 2 s"),
                    HasSubstr("rank 1 joins the group 'dense layers' and not the group without a name")));
}

TEST(Join, ReservedPortIsFreeForItsProcessOnly) {
  Listener const reserved(false, 0, Listener::Mode::kReserve);
  auto const to = wait_resolve("127.0.0.1", reserved.port()).endpoints[0];
  EXPECT_THAT(wait_connect(to, after(now(), 30)).error, HasSubstr("refused"));
  for (int i = 0; i < 2; ++i) {
    Listener const listener(false, reserved.port());
    EXPECT_EQ(wait_connect(to, after(now(), 30)).error, "");
  }
  EXPECT_THAT(wait_connect(to, after(now(), 30)).error, HasSubstr("refused"));
}

TEST(Join, LargeAddressesAndBroadcastsArrive) {
  auto const outcomes = join_all(4, [](int, JoinRequest& request) {
    request.mine.address = std::string(600'000, 'a');
    request.broadcast_data = std::string(3'000'000, 'b');
  });
  for (Outcome const& outcome : outcomes) {
    ASSERT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.joined.broadcast_data.size(), 3'000'000U);
    EXPECT_EQ(outcome.joined.members[3].address.size(), 600'000U);
  }
}

// Expects the same error, with these words, on all ranks.
void expect_rejected(std::vector<Outcome> const& outcomes, std::initializer_list<char const*> words) {
  for (Outcome const& outcome : outcomes) {
    EXPECT_EQ(outcome.error, outcomes[0].error);
    for (char const* word : words) EXPECT_THAT(outcome.error, HasSubstr(word));
  }
}

TEST(Join, AllRanksRejectDifferentSetting) {
  auto const other = [](int rank, JoinRequest& request) {
    if (rank == 2) request.must_match[0].second = "64";
  };
  expect_rejected(join_all(4, other), {"rank 2 has model.dim = 64 where rank 0 has 100 ("});
}

TEST(Join, ErrorShowsWhereLongValuesDiffer) {
  auto const other = [](int rank, JoinRequest& request) {
    request.must_match[1].second = std::string(5000, 'x') + (rank == 1 ? "seed = 8\nmore" : "seed = 7\nmore");
    request.must_match[1].second += std::string(5000, 'y');
  };
  auto const outcomes = join_all(2, other);
  expect_rejected(outcomes, {"rank 1 has data = \"...", "seed = 8 more", "seed = 7 more"});
  EXPECT_LT(outcomes[0].error.size(), 500U);
}

TEST(Join, ErrorCutsLongTextAtWord) {
  auto const other = [](int rank, JoinRequest& request) {
    request.must_match[0] = {"state of the configuration", "usable"};
    if (rank != 1) return;
    request.must_match[0].second = "not usable:";
    for (int i = 0; i < 40; ++i) request.must_match[0].second += " a_word";
  };
  expect_rejected(join_all(2, other), {"rank 1 has state of the configuration = \"not usable: a_word",
                                       " a_word...\" where rank 0 has usable ("});
}

TEST(Join, RejectsMissingSettingOnEitherSide) {
  expect_rejected(join_all(2,
                           [](int rank, JoinRequest& r) {
                             if (rank == 1) r.must_match.pop_back();
                           }),
                  {"rank 1 has no data, where rank 0 has one"});
  expect_rejected(join_all(2,
                           [](int rank, JoinRequest& r) {
                             if (rank == 0) r.must_match.pop_back();
                           }),
                  {"rank 1 has data, where rank 0 has none"});
}

TEST(Join, AllRanksRejectDifferentVersion) {
  auto const other = [](int rank, JoinRequest& request) {
    if (rank == 1) request.version = "0.9";
  };
  expect_rejected(join_all(3, other), {"rank 1 runs version 0.9 where rank 0 runs 1.0"});
}

TEST(Join, AllRanksRejectDifferentWorldSize) {
  auto const other = [](int rank, JoinRequest& request) {
    if (rank == 1) request.launch.size = 4;
  };
  expect_rejected(join_all(3, other),
                  {"rank 1 belongs to a job of 4 ranks where rank 0 belongs to one of 3", "WORLD_SIZE"});
}

TEST(Join, ErrorNamesProcessesWithSameRank) {
  auto const other = [](int rank, JoinRequest& request) {
    if (rank == 2) request.launch.rank = Rank{1};
  };
  expect_rejected(join_all(4, other),
                  {"two processes have rank 1", "process 1001 on host host1", "process 1002 on host host2"});
}

TEST(Join, ErrorListsMissingRanks) {
  int const port = free_port();
  auto request = request_of(0, 4, port);
  request.timeout_s = 0.5;
  auto zero = start_join(request);
  auto two = start_join(request_of(2, 4, port));
  std::vector<Outcome> outcomes(2);
  outcomes[0] = zero.get();
  outcomes[1] = two.get();
  std::string const place = "rank 0 listens at 127.0.0.1:" + std::to_string(port);
  expect_rejected(outcomes, {"ranks 1, 3 of 4 did not join within 0.5 s", place.c_str()});
}

TEST(Join, ErrorCountsManyMissingRanks) {
  auto request = request_of(0, 70'000, free_port());
  request.timeout_s = 0.1;
  std::string const error = start_join(request).get().error;
  EXPECT_THAT(error, HasSubstr("ranks 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 69989 others of 70000 did not join"));
  EXPECT_LT(error.size(), 500U);
}

// Rank 0 waits for its turn to listen, and for the other ranks, no longer than its timeout together.
TEST(Join, TimeoutCountsTheTurnToListen) {
  int const port = free_port();
  auto first = request_of(0, 2, port), second = first;
  first.group = "first", second.group = "second";
  first.timeout_s = 0.5, second.timeout_s = 4;
  TimePoint const begin = now();
  auto listening = start_join(first);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  auto waiting = start_join(second);
  std::string const error = waiting.get().error;
  EXPECT_THAT(error, HasSubstr("did not join within 4 s"));
  // The first group listens for 2.5 s, in which it would tell other ranks why it ended; the second also ends 2 s late.
  EXPECT_LT(now(), after(begin, 7.5));  // with two timeouts, 8.5 s
  EXPECT_THAT(listening.get().error, HasSubstr("did not join within 0.5 s"));
}

// Authenticates as a rank, waits for a frame of rank 0, and closes the connection.
void authenticate_and_close(JoinRequest const& request) {
  Connected connected;
  while (!connected.socket.is_open()) {
    connected = wait_connect(wait_resolve("127.0.0.1", request.launch.port).endpoints[0], after(now(), 30));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  Connection link(std::move(connected.socket), ConnectionSide::kOther);
  std::string const mine = make_handshake();
  link.put_plaintext(mine);
  while (link.incoming().size() < kHandshakeBytes) (void)link.exchange();
  link.set_key(session_key(request.launch.token, mine, link.incoming().substr(0, kHandshakeBytes)));
  link.consume(kHandshakeBytes);
  link.put(FrameKind::kHello, encode(rank_info_of(request)));
  while (!link.next()) (void)link.exchange();
}

TEST(Join, LostRankEndsJoinOfOthers) {
  int const port = free_port();
  auto zero = start_join(request_of(0, 4, port));
  auto one = start_join(request_of(1, 4, port));
  authenticate_and_close(request_of(2, 4, port));
  std::vector<Outcome> outcomes(2);
  outcomes[0] = zero.get();
  outcomes[1] = one.get();
  expect_rejected(outcomes,
                  {"rank 2 is lost, process 1002 on host host2, before all ranks had joined: its process ended"});
}

TEST(Join, ReportsLossOfRankZero) {
  int const port = free_port();
  auto one = start_join(request_of(1, 3, port));
  {
    Listener listener(true, port);
    std::optional<std::pair<Socket, SocketAddress>> accepted;
    while (!(accepted = listener.accept(listener.sockets()[0]))) std::this_thread::yield();
    Connection link(std::move(accepted->first), ConnectionSide::kRankZero);
    std::string const mine = make_handshake();
    link.put_plaintext(mine);
    while (link.incoming().size() < kHandshakeBytes) (void)link.exchange();
    link.set_key(session_key("the token of the tests", link.incoming().substr(0, kHandshakeBytes), mine));
    link.consume(kHandshakeBytes);
    while (!link.next()) (void)link.exchange();
    link.put(FrameKind::kAlive, {});
    while (link.has_outgoing()) (void)link.exchange();
  }
  std::string const error = one.get().error;
  EXPECT_THAT(error, HasSubstr("rank 0 is lost, while rank 1 waited for the other ranks: its process ended"));
}

TEST(Join, ErrorNamesOccupiedPort) {
  Listener const before(true, 0);
  auto request = request_of(0, 2, before.port());
  request.launch.token = "";
  expect_error([&] { wait_join(request); },
               {"127.0.0.1", std::to_string(before.port()).c_str(), "in use", "RANK=0", "GPUPS_PORT"});
  request.launch.token = "with one it listens everywhere";
  expect_error([&] { wait_join(request); }, {std::to_string(before.port()).c_str(), "in use", "GPUPS_PORT"});
}

TEST(Join, TimesOutWithoutRankZero) {
  auto request = request_of(1, 2, free_port());
  request.timeout_s = 0.2;
  expect_error([&] { wait_join(request); }, {"rank 0 could not be reached within 0.2 s", "127.0.0.1", "refused"});
}

TEST(Join, ErrorNamesUnknownHost) {
  auto request = request_of(1, 2, 1);
  request.launch.hosts = {"no-such-host.invalid"};
  request.timeout_s = 0.1;
  expect_error([&] { wait_join(request); }, {"no-such-host.invalid", "MASTER_ADDR"});
}

TEST(Join, RejectsWildcardAddress) {
  for (char const* const any : {"0.0.0.0", "::"}) {
    for (int const rank : {0, 1}) {
      auto request = request_of(rank, 2, 1);
      request.launch.hosts = {any};
      request.launch.token = "";
      expect_error([&] { wait_join(request); }, {"MASTER_ADDR", any, "not the address of a machine", "127.0.0.1"});
    }
  }
}

TEST(Join, OtherMachineNeedsToken) {
  for (int const rank : {0, 1}) {
    auto request = request_of(rank, 2, 1);
    request.launch.hosts = {"192.0.2.1"};  // a documentation address
    request.launch.token = "";
    expect_error([&] { wait_join(request); }, {"192.0.2.1", "GPUPS_TOKEN_FILE"});
  }
}

}  // namespace
}  // namespace gpups::test::join_test
