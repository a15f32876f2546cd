// SPDX-License-Identifier: Apache-2.0
// Statistics of a store: bytes and messages sent, received and saved, the seconds of its rounds, and the work of its
// streams.
#include <gtest/gtest.h>

#include <barrier>
#include <chrono>
#include <vector>

#include "cache/protocol/round/round_timer.hpp"
#include "comm/progress/traffic_counters.hpp"
#include "gpups/gpups.hpp"
#include "trainer/accounts/metrics.hpp"

namespace gpups::test::traffic_test {
namespace {

constexpr std::uint64_t TrafficByKind::*kKinds[] = {
    &TrafficByKind::gradients, &TrafficByKind::refreshes, &TrafficByKind::intents,    &TrafficByKind::late_fetches,
    &TrafficByKind::moves,     &TrafficByKind::lookups,   &TrafficByKind::allreduces, &TrafficByKind::control};

// Each rank trains some steps on rows of all ranks, looks up rows and sums an array. Returns the statistics of all
// ranks.
std::vector<Stats> stats_of_training(int ranks, int steps) {
  std::vector<Stats> all(static_cast<std::size_t>(ranks));
  std::barrier all_have_looked(ranks);
  run_ranks(Group::threads(ranks), [&](Group group) {
    Store store(group, {.threads = 1});
    auto const id = store.add_table({.name = "t", .dim = 4});
    auto stream = store.make_stream();
    std::vector<Key> keys;
    for (std::uint64_t k = 0; k < 50; ++k) keys.push_back(Key{k});
    Matrix<float> values(Device::host(), keys.size(), 4);
    memory::fill_bytes(stream, values.view().data(), 0, values.view().flat().bytes());
    for (std::int64_t t = 0; t < steps; ++t) {
      TableBatch const part{.table = id, .keys = View<Key const>(keys)};
      auto batch = store.prepare(stream, Clock{t}, {&part, 1}, 1);
      store.wait_ready(batch);
      TableGradients const gradients{.sources = values};
      store.push(stream, batch, {&gradients, 1});
      store.advance_clock();
    }
    store.wait_applied();
    store.lookup(stream, id, View<Key const>(keys), values, {});
    Array<std::int64_t> sums(Device::host(), 12);
    memory::fill_bytes(stream, sums.data(), 0, sums.bytes());
    group.wait_allreduce(stream, group.begin_allreduce(stream, sums));
    store.wait_barrier();  // all that was sent has been received
    all[number(group.rank())] = store.stats();
    all_have_looked.arrive_and_wait();  // before any rank sends more, as the destructor of a Store does
  });
  return all;
}

TEST(Traffic, BothEndsOfPairCountTheSame) {
  auto const all = stats_of_training(3, 4);
  for (std::size_t from = 0; from < all.size(); ++from) {
    for (std::size_t to = 0; to < all.size(); ++to) {
      Traffic const sent = all[from].peers[to].sent, received = all[to].peers[from].received;
      EXPECT_EQ(sent.bytes() > 0, from != to);
      for (auto const kind : kKinds) {
        EXPECT_EQ(sent.*kind, received.*kind) << from << " to " << to;
        EXPECT_EQ(sent.messages.*kind, received.messages.*kind) << from << " to " << to;
      }
    }
  }
}

TEST(Traffic, TotalsAreSumsOverPeers) {
  auto const all = stats_of_training(3, 4);
  for (Stats const& stats : all) {
    Traffic sent;
    for (PeerTraffic const& peer : stats.peers) sent += peer.sent;
    EXPECT_EQ(stats.sent.bytes(), sent.bytes());
    EXPECT_EQ(stats.sent.messages.total(), sent.messages.total());
    EXPECT_GT(stats.sent.gradients, 0U);
    EXPECT_GT(stats.received.lookups, 0U);
    EXPECT_GT(stats.sent.allreduces, 0U);
    EXPECT_GT(stats.compression_ratio(), 1);
  }
}

// Uncompressed, a row has gradients of 16 bytes, a key of 8 and values of 16. 12 integers are summed in slices of 4.
// All numbers are zeros.
TEST(Traffic, SentPlusSavedIsUncompressed) {
  constexpr int kSteps = 4;
  for (Stats const& stats : stats_of_training(3, kSteps)) {
    std::uint64_t const rows = stats.remote_keys;
    auto const plain = [&](auto const kind) { return stats.sent.*kind + stats.saved_bytes.*kind; };
    EXPECT_GT(rows, 0U);
    EXPECT_EQ(plain(&TrafficByKind::gradients), 16 * rows);
    EXPECT_EQ(plain(&TrafficByKind::allreduces), 2 * 12 * sizeof(std::int64_t));  // to each of two ranks
    EXPECT_LT(stats.sent.gradients, 4 * rows) << "zeros take few bytes";
    EXPECT_GT(stats.saved_bytes.intents + stats.saved_bytes.late_fetches, 0U);
    EXPECT_EQ(stats.saved_bytes.refreshes, 0U);
    double const sent = static_cast<double>(stats.sent.bytes());
    EXPECT_EQ(stats.compression_ratio(), (sent + static_cast<double>(stats.saved_bytes.total())) / sent);
  }
  std::uint64_t keys_and_values = 0, rows = 0;
  for (Stats const& stats : stats_of_training(3, kSteps)) {
    for (auto const kind :
         {&TrafficByKind::intents, &TrafficByKind::late_fetches, &TrafficByKind::moves, &TrafficByKind::refreshes}) {
      keys_and_values += stats.sent.*kind + stats.saved_bytes.*kind;
    }
    rows += stats.remote_keys;
  }
  EXPECT_EQ(keys_and_values, (8 + 16) * rows);  // each announced row is sent
}

TEST(Traffic, CountsSavedBytes) {
  comm::TrafficCounters counters(2);
  counters.sent(Rank{1}, &TrafficByKind::gradients, 100);
  counters.sent(Rank{1}, &TrafficByKind::control, 100);
  counters.add_saved(&TrafficByKind::gradients, 300);
  Stats stats;
  counters.write(stats);
  EXPECT_EQ(stats.saved_bytes.gradients, 300U);
  EXPECT_EQ(stats.compression_ratio(), 2.5);
  EXPECT_EQ(stats.sent.messages.gradients, 1U);
  EXPECT_EQ(Stats{}.compression_ratio(), 1);
}

TEST(Traffic, SubtractSavedStopsAtZero) {
  comm::TrafficCounters counters(2);
  counters.sent(Rank{1}, &TrafficByKind::gradients, 100);
  counters.add_saved(&TrafficByKind::gradients, 100);
  counters.subtract_saved(&TrafficByKind::gradients, 100);
  counters.add_saved(&TrafficByKind::refreshes, 5);
  counters.subtract_saved(&TrafficByKind::refreshes, 7);
  Stats stats;
  counters.write(stats);
  EXPECT_EQ(stats.saved_bytes.total(), 0U);
  EXPECT_EQ(stats.compression_ratio(), 1);
}

TEST(Traffic, RoundTimesFitInElapsedTime) {
  auto const start = std::chrono::steady_clock::now();
  auto const all = stats_of_training(2, 20);
  double const passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (Stats const& stats : all) {
    RoundSeconds const& s = stats.round;
    for (double const part : {s.gradients, s.update, s.refreshes}) EXPECT_GT(part, 0);
    EXPECT_GE(s.waiting, 0);
    EXPECT_LE(s.gradients + s.update + s.refreshes + s.waiting, passed);
  }
}

// wait_seconds counts these two calls, with at most the time that their caller measures, and no other part of a step.
TEST(Traffic, CountsTimeInWaitReadyAndWaitApplied) {
  using Seconds = std::chrono::duration<double>;
  run_ranks(Group::threads(2), [](Group group) {
    Store store(group, {.threads = 1});
    auto const id = store.add_table({.name = "t", .dim = 4});
    auto stream = store.make_stream();
    std::vector<Key> const keys{Key{1}, Key{2}, Key{3}};
    Matrix<float> values(Device::host(), keys.size(), 4);
    memory::fill_bytes(stream, values.view().data(), 0, values.view().flat().bytes());
    double waited = 0;
    auto const expect_more_by = [&](auto call) {
      auto const begin = std::chrono::steady_clock::now();
      call();
      double const passed = Seconds(std::chrono::steady_clock::now() - begin).count();
      double const more = store.stats().wait_seconds - waited;
      EXPECT_GT(more, 0);
      EXPECT_LE(more, passed + 1e-9);  // for rounding
      waited += more;
    };
    EXPECT_EQ(store.stats().wait_seconds, 0);
    for (std::int64_t t = 0; t < 3; ++t) {
      TableBatch const part{.table = id, .keys = View<Key const>(keys)};
      auto batch = store.prepare(stream, Clock{t}, {&part, 1}, 1);
      expect_more_by([&] { store.wait_ready(batch); });
      TableGradients const gradients{.sources = values};
      store.push(stream, batch, {&gradients, 1});
      store.advance_clock();
      store.wait_barrier();
      EXPECT_DOUBLE_EQ(store.stats().wait_seconds, waited);
    }
    expect_more_by([&] { store.wait_applied(); });
  });
}

TEST(RoundTimer, CountsTimeBetweenActionsAsWaiting) {
  cache::RoundTimer times;
  times.progress_begins(cache::Round::Phase::kTraining);
  times.acted(cache::Round::SendGradients{});
  RoundSeconds const before = times.seconds();
  EXPECT_EQ(before.waiting, 0);
  for (int i = 0; i < 3; ++i) times.progress_begins(cache::Round::Phase::kGradientPhase);
  EXPECT_GT(times.seconds().waiting, 0);
  EXPECT_EQ(times.seconds().gradients, before.gradients);
  times.moved(cache::Round::Phase::kRefreshPhase);
  EXPECT_GT(times.seconds().refreshes, 0);
  RoundSeconds const then = times.seconds();
  times.progress_begins(cache::Round::Phase::kTraining);  // the round is over
  times.moved(cache::Round::Phase::kTraining);
  EXPECT_EQ(times.seconds().waiting, then.waiting);
  EXPECT_EQ(times.seconds().refreshes, then.refreshes);
}

TEST(TrafficReport, SumsOverRanks) {
  auto const all = stats_of_training(3, 4);
  std::vector<std::int64_t> sums;
  std::uint64_t sent = 0, messages = 0, received = 0;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    auto const terms = trainer::to_terms(all[rank]);
    sums.resize(terms.size());
    for (std::size_t i = 0; i < terms.size(); ++i) sums[i] += terms[i];
    sent += all[rank].sent.bytes();
    messages += all[rank].sent.messages.total();
  }
  auto const traffic_report = trainer::from_sums(sums);
  EXPECT_EQ(traffic_report.sent.bytes(), sent);
  EXPECT_EQ(traffic_report.sent.messages.total(), messages);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    EXPECT_EQ(traffic_report.received[rank], all[rank].received.bytes());
    received += traffic_report.received[rank];
  }
  EXPECT_EQ(received, sent);
}

// Rank 1 has counted a message that rank 0 sent after it had read its own statistics.
TEST(TrafficReport, CountsReceivedBytesAtSender) {
  Traffic const before{{.gradients = 100}}, after{{.gradients = 100, .control = 289}};
  Stats const first{.sent = before, .peers = {{}, {.sent = before}}};
  Stats const second{.received = after, .peers = {{.received = after}, {}}};
  auto sums = trainer::to_terms(first);
  auto const terms = trainer::to_terms(second);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += terms[i];
  auto const traffic_report = trainer::from_sums(sums);
  EXPECT_EQ(traffic_report.received, (std::vector<std::uint64_t>{0, 100}));
  EXPECT_EQ(traffic_report.sent.bytes(), 100U);
}

TEST(TrafficReport, ReportsReceiveImbalance) {
  EXPECT_EQ((trainer::TrafficReport{.received = {10, 10, 40, 0}}.receive_imbalance()), 40.0 / 15);
  EXPECT_EQ((trainer::TrafficReport{.received = {7, 7}}.receive_imbalance()), 1);
  EXPECT_EQ((trainer::TrafficReport{.received = {0, 0}}.receive_imbalance()), 1);
  EXPECT_EQ(trainer::to_json(trainer::TrafficReport{.received = {1, 3}}).dump(),
            R"({"compression_ratio":1.0,"compression_ratio_by_kind":{},"receive_imbalance":1.5,"received":[1,3],)"
            R"("saved_bytes":{"allreduces":0,"control":0,"gradients":0,"intents":0,"late_fetches":0,"lookups":0,)"
            R"("moves":0,"refreshes":0},"sent":{"allreduces":0,"control":0,"gradients":0,"intents":0,"late_fetches":0,)"
            R"("lookups":0,"messages":0,"moves":0,"refreshes":0}})");
}

TEST(TrafficReport, ReportsCompressionRatioByKind) {
  trainer::TrafficReport const traffic_report{.sent = Traffic{{.gradients = 100, .control = 300}},
                                              .saved_bytes = {.gradients = 300, .refreshes = 5}};
  EXPECT_EQ(traffic_report.compression_ratio_by_kind().dump(), R"({"control":1.0,"gradients":4.0})");
  EXPECT_EQ(traffic_report.compression_ratio(), 705.0 / 400);
}

TEST(StreamStats, CountWorkOfTheStoresStreams) {
  Store store(Group::alone(), {});
  auto const id = store.add_table({.name = "t", .dim = 4});
  auto stream = store.make_stream();
  std::vector<Key> const keys{Key{7}, Key{9}};
  Matrix<float> const values(Device::host(), keys.size(), 4);
  store.lookup(stream, id, View<Key const>(keys), values, {});
  Stats const before = store.stats();
  EXPECT_GT(before.launches, 0U);
  EXPECT_EQ(before.host_copies, 0U) << "a host stream copies nothing to a GPU";
  stream.wait();
  Stream(Device::host(), 1).wait();  // not a stream of the store
  EXPECT_EQ(store.stats().stream_waits, before.stream_waits + 1);
}

}  // namespace
}  // namespace gpups::test::traffic_test
