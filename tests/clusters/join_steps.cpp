// SPDX-License-Identifier: Apache-2.0
// A rank that joins and leaves groups, before, while and after MPI is in use. The exit status is 0 if all sums are
// right.
//
// usage: join_steps [STEP...]    without steps, prints whether this build has MPI
//   ranks=N         expects N ranks in the groups of the following steps
//   join=NAME       joins the group NAME, which binds this process to cores
//   join_only=NAME  joins the group, and checks that it changes no core
//   leave=NAME      leaves the group
//   threads=A,B     joins both groups at the same time, each in a thread
//   sum             sums over the ranks of each group joined and, if MPI is in use, by MPI
//   mpi_init, mpi_finalize
#include <fmt/core.h>
#include <sched.h>

#include <cstdint>
#include <exception>
#include <future>
#include <map>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"
#ifdef GPUPS_TEST_HAS_MPI
#include <mpi.h>
#endif

namespace gpups::test {
namespace {

void require(bool condition, std::string const& what) {
  if (!condition) throw Error(what);
}

cpu_set_t cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  require(sched_getaffinity(0, sizeof set, &set) == 0, "the cores of this process cannot be read");
  return set;
}

#ifdef GPUPS_TEST_HAS_MPI

constexpr bool kHasMpi = true;

void start_mpi() { require(MPI_Init(nullptr, nullptr) == MPI_SUCCESS, "MPI_Init has failed"); }
void end_mpi() { require(MPI_Finalize() == MPI_SUCCESS, "MPI_Finalize has failed"); }

void sum_by_mpi() {
  int is_on = 0, is_over = 0, rank = 0, ranks = 0;
  MPI_Initialized(&is_on);
  MPI_Finalized(&is_over);
  if (is_on == 0 || is_over != 0) return;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::int64_t const mine = rank + 1;
  std::int64_t sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  require(sum == static_cast<std::int64_t>(ranks) * (ranks + 1) / 2, "a sum of MPI is wrong");
}

#else

constexpr bool kHasMpi = false;

void start_mpi() { throw Error("this build has no MPI"); }
void end_mpi() { start_mpi(); }
void sum_by_mpi() {}

#endif

void sum_by_group(Group const& group, std::string const& name) {
  require(group.broadcast_data() == name, "the data of another group have arrived in " + name);
  Stream stream(Device::host(), 1);
  std::int64_t const ranks = group.size();
  std::vector<std::int64_t> values(1000, std::int64_t{number(group.rank())} + 1);
  group.wait_allreduce(stream, group.begin_allreduce(stream, values));
  for (auto const sum : values) require(sum == ranks * (ranks + 1) / 2, "a sum of the group " + name + " is wrong");
}

Group join_group(std::string const& name, bool bind_cores = true) {
  return Group::join({.broadcast_data = name, .join_timeout_s = 60, .name = name, .bind_cores = bind_cores});
}

void run(std::vector<std::string> const& steps) {
  std::map<std::string, Group> groups;
  int ranks = 0;
  for (auto const& step : steps) {
    auto const equals = step.find('=');
    std::string const verb = step.substr(0, equals), name = equals == std::string::npos ? "" : step.substr(equals + 1);
    if (verb == "ranks") {
      ranks = std::stoi(name);
    } else if (verb == "join") {
      groups.insert_or_assign(name, join_group(name));
    } else if (verb == "join_only") {
      cpu_set_t const before = cores();
      groups.insert_or_assign(name, join_group(name, false));
      cpu_set_t const after = cores();
      require(CPU_EQUAL(&before, &after), "the process runs on other cores than before");
    } else if (verb == "threads") {
      auto const a = name.substr(0, name.find(',')), b = name.substr(name.find(',') + 1);
      bool const is_odd = number(Group::launch_info().rank) % 2 == 1;  // it starts with the other group
      auto other = std::async(std::launch::async, [&] { return join_group(is_odd ? a : b); });
      groups.insert_or_assign(is_odd ? b : a, join_group(is_odd ? b : a));
      groups.insert_or_assign(is_odd ? a : b, other.get());
    } else if (verb == "leave") {
      require(groups.erase(name) == 1, "this rank is not in the group " + name);
    } else if (verb == "sum") {
      for (auto const& [its_name, group] : groups) {
        require(group.size() == ranks, "the group " + its_name + " has another number of ranks");
        sum_by_group(group, its_name);
      }
      sum_by_mpi();
    } else if (verb == "mpi_init") {
      start_mpi();
    } else if (verb == "mpi_finalize") {
      end_mpi();
    } else {
      throw Error("there is no such step (see the beginning of join_steps.cpp): " + step);
    }
    fmt::print("{}: done\n", step);
  }
}

}  // namespace
}  // namespace gpups::test

int main(int count, char** arguments) {
  using namespace gpups::test;
  try {
    if (count < 2) fmt::print("{}\n", kHasMpi ? "MPI" : "no MPI");
    run({arguments + 1, arguments + count});
    return 0;
  } catch (std::exception const& error) {
    fmt::print("error: {}\n", error.what());
    return 1;
  }
}
