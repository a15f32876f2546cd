// SPDX-License-Identifier: Apache-2.0
// Allreduces of ranks that are processes, over UCX.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#include "tests/support/float_allreduce_workload.hpp"
#include "tests/support/free_port.hpp"

namespace gpups::test::allreduce_processes_test {
namespace {

// Element i of a rank's array, and of the sum.
std::int64_t term(int rank, std::size_t i) {
  return (std::int64_t{1} << 40) * (rank + 1) + static_cast<std::int64_t>(i);
}
std::int64_t sum(int ranks, std::size_t i) {
  std::int64_t total = 0;
  for (int rank = 0; rank < ranks; ++rank) total += term(rank, i);
  return total;
}

// Arrays that are sent eagerly and by rendezvous, all in flight together and during the end of a step.
void sum_integers(Group const& group) {
  Store store(group, {.threads = 1});
  store.add_table({.name = "rows", .dim = 2});
  auto stream = store.make_stream();
  int const rank = static_cast<int>(number(group.rank()));
  for (int step = 0; step < 3; ++step) {
    std::vector<std::vector<std::int64_t>> arrays;
    std::vector<CollectiveRequest> requests;
    for (std::size_t const n : {0, 1, 3, 5000, 1000000}) {
      auto& mine = arrays.emplace_back(n);
      for (std::size_t i = 0; i < n; ++i) mine[i] = term(rank, i);
    }
    for (auto& values : arrays) requests.push_back(group.begin_allreduce(stream, values));
    store.advance_clock();
    for (auto const& request : requests) group.wait_allreduce(stream, request);
    for (auto const& values : arrays) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (values[i] != sum(group.size(), i)) throw Error("element " + std::to_string(i) + " is not the sum");
      }
    }
  }
  store.wait_barrier();
}

// Floats, by all algorithms.
void sum_floats(Group const& group) {
  Store store(group, {.threads = 1});
  auto stream = store.make_stream();
  for (std::size_t const size : {0, 1, 20000, 1500000}) FloatSums(group, stream, size).check_all();
  store.wait_barrier();
}

// One rank's arrays are shorter than those of the others.
void sum_different_sizes(Group const& group) {
  Store const store(group, {.threads = 1});
  auto stream = store.make_stream();
  std::vector<std::int64_t> values(group.rank() == Rank{1} ? 10 : 100000);
  try {
    group.wait_allreduce(stream, group.begin_allreduce(stream, values));
  } catch (PeerError const& error) {
    if (std::string(error.what()).find("integers in allreduce 0") != std::string::npos) return;
    throw;
  }
  throw Error("the sizes differ, and the arrays were summed");
}

// Only rank 1 sets GPUPS_ALLREDUCE_ALGORITHM.
void sum_by_different_algorithms(Group const& group, std::size_t size) {
  if (group.rank() == Rank{1}) ::setenv("GPUPS_ALLREDUCE_ALGORITHM", "reduce_scatter_allgather", 1);
  Store const store(group, {.threads = 1});
  auto stream = store.make_stream();
  std::vector<float> values(size, 1);
  try {
    group.wait_allreduce(stream, group.begin_allreduce(stream, values));
  } catch (PeerError const& error) {
    std::string const text = error.what();
    bool const names_two = text.find("rank 1") != std::string::npos && text.find("where rank ") != std::string::npos;
    if (names_two && text.find("by reduce_scatter_allgather (GPUPS_ALLREDUCE_ALGORITHM) in float") != std::string::npos)
      return;
    throw;
  }
  throw Error("ranks summed by different algorithms");
}

// Runs `body` on each rank, as a process of its own, and returns how many failed.
int failures(int ranks, std::function<void(Group const&)> const& body) {
  int const port = free_port();
  std::vector<pid_t> pids;
  for (int rank = 0; rank < ranks; ++rank) {
    pid_t const pid = fork();
    if (pid == 0) {
      ::setenv("RANK", std::to_string(rank).c_str(), 1);
      ::setenv("WORLD_SIZE", std::to_string(ranks).c_str(), 1);
      ::setenv("MASTER_ADDR", "127.0.0.1", 1);
      ::setenv("MASTER_PORT", std::to_string(port).c_str(), 1);
      try {
        body(Group::join());
        _exit(0);
      } catch (std::exception const& error) {
        std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
        _exit(1);
      }
    }
    pids.push_back(pid);
  }
  int failed = 0;
  for (pid_t const pid : pids) {
    int status = 0;
    if (waitpid(pid, &status, 0) != pid || status != 0) ++failed;
  }
  return failed;
}

TEST(AllreduceProcesses, EveryRankGetsSums) {
  for (int const ranks : {2, 3}) EXPECT_EQ(failures(ranks, sum_integers), 0) << ranks;
  for (int const ranks : {2, 3}) EXPECT_EQ(failures(ranks, sum_floats), 0) << ranks;
}

TEST(AllreduceProcesses, RejectDifferentSizes) { EXPECT_EQ(failures(3, sum_different_sizes), 0); }

TEST(AllreduceProcesses, RejectAlgorithmSetOnOneRank) {
  for (std::size_t const size : {10, 100000}) {
    EXPECT_EQ(failures(3, [size](Group const& group) { sum_by_different_algorithms(group, size); }), 0) << size;
  }
}

}  // namespace
}  // namespace gpups::test::allreduce_processes_test
