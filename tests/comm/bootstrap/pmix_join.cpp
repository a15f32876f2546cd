// SPDX-License-Identifier: Apache-2.0
// Joins the processes that mpirun or srun --mpi=pmix has started. The exit status is 0 if all values are right.
//
// usage: mpirun -n RANKS pmix_join RANKS
#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>

#include "comm/bootstrap/join.hpp"
#include "gpups/error.hpp"

int main(int count, char** arguments) {
  using namespace gpups;
  try {
    comm::JoinRequest request{.launch = comm::detect_launch()};
    request.mine = {.host = "here", .machine = "this one", .pid = getpid()};
    request.version = "1";
    request.broadcast_data = fmt::format("rank {}", number(request.launch.rank));
    if (request.launch.kind != comm::LaunchEnvironment::Kind::kPmix)
      throw Error("this process was not started by PMIx");
    comm::JoinResult const joined = comm::wait_join(request);
    std::size_t const expected = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 0;
    bool const is_right = joined.members.size() == expected && joined.broadcast_data == "rank 0" &&
                          joined.members[number(joined.rank)].pid == getpid() && joined.local_rank.has_value();
    joined.failure_detector->leave(joined.rank, "");
    bool const all = joined.failure_detector->wait_all_left(60);
    fmt::print("rank {} of {}, local rank {}: {}\n", number(joined.rank), joined.members.size(),
               joined.local_rank.value_or(-1), is_right && all ? "right" : "wrong");
    return is_right && all ? 0 : 1;
  } catch (std::exception const& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
