// SPDX-License-Identifier: Apache-2.0
// A rank that repeats one kind of work with the other ranks until one of them is lost. Then it prints which one, and
// ends. Several sums are in flight at a time. Files are in the folder in which the program is started.
//
// usage: work_until_lost [WORK [PEER_TIMEOUT_S]]
//   WORK: one of repeated_calls(), integers, reduce_scatter, top_k, an ALGORITHM of allreduce_algorithms() for arrays,
//   or ALGORITHM:sparse for sparse vectors; without it the program prints all names
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>

#include "tests/clusters/until_failure.hpp"

namespace gpups::test {

void print_going() {
  std::puts("going");
  std::fflush(stdout);
}

namespace {

constexpr std::size_t kElements = std::size_t{1} << 21, kEvery = 16;  // of a sparse vector, one of 16 is not zero
constexpr std::size_t kInFlight = 3;

// begin: starts a sum; end: waits for it.
void sum_without_end(std::function<CollectiveRequest()> const& begin,
                     std::function<void(CollectiveRequest const&)> const& end) {
  std::deque<CollectiveRequest> open;
  for (std::size_t sums = 0;; ++sums) {
    open.push_back(begin());
    if (open.size() < kInFlight) continue;
    end(open.front());
    open.pop_front();
    if (sums == kInFlight) print_going();
  }
}

void sum_integers(Group const& group, Stream& stream) {
  std::vector<std::vector<std::int64_t>> arrays(kInFlight, std::vector<std::int64_t>(kElements, 1 << 20));
  std::size_t next = 0;
  sum_without_end(
      [&] {
        auto& values = arrays[next++ % kInFlight];
        std::fill(values.begin(), values.end(), 1 << 20);
        return group.begin_allreduce(stream, values);
      },
      [&](CollectiveRequest const& request) { group.wait_allreduce(stream, request); });
}

// dense: sums arrays, else sparse vectors. algorithm: empty for a reduce-scatter.
void sum_floats(Group const& group, Stream& stream, std::string const& algorithm, bool dense) {
  std::vector<std::uint32_t> indices;
  for (std::uint32_t i = number(group.rank()); i < kElements; i += kEvery) indices.push_back(i);
  std::vector<float> const values(indices.size(), 1.5F);
  SparseView const vector{
      .size = kElements, .indices = View<std::uint32_t const>(indices), .values = View<float const>(values)};
  auto const begin = [&] {
    AllreduceOptions const options{.algorithm = algorithm};
    if (algorithm.empty()) return group.begin_reduce_scatter(stream, vector);
    return dense ? group.begin_allreduce(stream, Array<float>(Device::host(), kElements), options)
                 : group.begin_allreduce(stream, vector, options);
  };
  sum_without_end(begin, [&](CollectiveRequest const& request) { group.wait_result(stream, request); });
}

void sum_top_k(Group const& group, Stream& stream) {
  std::vector<float> const gradient(kElements, 0x1p-10F);
  std::vector<float> sums(kElements);
  std::deque<TopKAllreduce> open;
  for (std::size_t i = 0; i < kInFlight; ++i) {
    open.emplace_back(group, kElements, TopKOptions{.density = 1.0 / kEvery})
        .begin(stream, View<float const>(gradient));
  }
  for (std::size_t sums_ended = 0;; ++sums_ended) {
    auto& sum = open[sums_ended % kInFlight];
    sum.wait(stream, View<float>(sums));
    sum.begin(stream, View<float const>(gradient));
    if (sums_ended == kInFlight) print_going();
  }
}

// Returns the time of the machine's clock, which is the same for all its processes.
double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void run(Work const& work, double peer_timeout_s) {
  if (work.before_join) work.before_join();
  auto const group = Group::join({.peer_timeout_s = peer_timeout_s});
  Store store(group, {.threads = 1});
  auto const table = store.add_table({.name = "t", .dim = kDim, .expected_rows = kRows});
  auto stream = store.make_stream();
  try {
    work.run({.group = group, .store = store, .table = table, .stream = stream});
  } catch (PeerError const& error) {  // printed before the store is destroyed, which takes time
    std::printf("lost at %.3f: rank %u: %s\n", now_s(), number(error.peer()), error.what());
    std::fflush(stdout);
    throw;
  }
}

std::vector<Work> all_work() {
  auto all = repeated_allreduces();
  for (auto& work : repeated_calls()) all.push_back(std::move(work));
  return all;
}

Work find(std::string const& name) {
  for (auto const& work : all_work()) {
    if (work.name == name) return work;
  }
  throw Error("there is no such work (run the program without arguments for a list): " + name);
}

}  // namespace

std::vector<Work> repeated_allreduces() {
  std::vector<Work> all{
      {"integers", [](Member const& mine) { sum_integers(mine.group, mine.stream); }},
      {"reduce_scatter", [](Member const& mine) { sum_floats(mine.group, mine.stream, "", false); }},
      {"top_k", [](Member const& mine) { sum_top_k(mine.group, mine.stream); }},
  };
  for (auto const& algorithm : allreduce_algorithms()) {
    if (algorithm.by_nccl) continue;  // not available on the host
    std::string const name = algorithm.name;
    all.push_back({name, [name](Member const& mine) { sum_floats(mine.group, mine.stream, name, true); }});
    all.push_back({name + ":sparse", [name](Member const& mine) { sum_floats(mine.group, mine.stream, name, false); }});
  }
  return all;
}

}  // namespace gpups::test

int main(int argc, char** argv) {
  try {
    if (argc < 2) {
      for (auto const& work : gpups::test::all_work()) std::puts(work.name.c_str());
      return 0;
    }
    gpups::test::run(gpups::test::find(argv[1]), argc > 2 ? std::atof(argv[2]) : 30);
  } catch (gpups::PeerError const&) {
    return 3;
  } catch (std::exception const& error) {
    std::printf("error: %s\n", error.what());
  }
  return 1;
}
