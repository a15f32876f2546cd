// SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/launch.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "kernels/base/check.hpp"

namespace gpups::comm {
namespace {

constexpr int kSizeMax = 1 << 20;

// Returns the value of the variable; empty if it is unset or empty.
std::string text_of(char const* name) {
  char const* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

// Returns the value of the variable as an integer; empty if it is unset. Throws Error unless it is from `low` to
// `high`.
std::optional<int> number_of(char const* name, int low, int high, char const* what) {
  std::string const text = text_of(name);
  if (text.empty()) return {};
  int value = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  GPUPS_REQUIRE(error == std::errc() && end == text.data() + text.size() && value >= low && value <= high,
                "{} is \"{}\" in the environment ({} is a whole number from {} to {}): correct or unset it", name, text,
                what, low, high);
  return value;
}

std::optional<int> rank_of(char const* name) { return number_of(name, 0, kSizeMax - 1, "a rank"); }
std::optional<int> size_of(char const* name) { return number_of(name, 1, kSizeMax, "a number of ranks"); }
std::optional<int> port_of(char const* name) { return number_of(name, 1, 65535, "a port"); }

std::string token_in(std::string const& file) {
  std::ifstream in(file, std::ios::binary);
  std::string token;
  std::getline(in, token, '\0');
  GPUPS_REQUIRE(
      in.is_open() && !in.bad(),
      "the token file {} cannot be read (GPUPS_TOKEN_FILE gives its path): correct the path or the permissions", file);
  token.erase(std::find_if(token.rbegin(), token.rend(), [](char c) { return c != '\n' && c != '\r'; }).base(),
              token.end());
  GPUPS_REQUIRE(!token.empty(),
                "{} is empty (GPUPS_TOKEN_FILE gives it as the file with the token of the job): write a token to it",
                file);
  return token;
}

std::string token_of_environment() {
  std::string const file = text_of("GPUPS_TOKEN_FILE"), token = text_of("GPUPS_TOKEN");
  if (file.empty()) return token;
  std::string read = token_in(file);
  GPUPS_REQUIRE(
      token.empty() || token == read,
      "GPUPS_TOKEN and the file in GPUPS_TOKEN_FILE have different tokens (a job has one token): unset one of them");
  return read;
}

// A launcher other than one that sets RANK, and how many processes it has started; 0: no such launcher, or unknown.
struct Launcher {
  std::string name{};
  std::string variable{};
  int size = 0;
};

Launcher launcher() {
  if (auto const size = size_of("OMPI_COMM_WORLD_SIZE")) return {"mpirun", "OMPI_COMM_WORLD_SIZE", *size};
  // SLURM_NTASKS is also set in a batch script outside of any step.
  if (auto const size = size_of("SLURM_STEP_NUM_TASKS"); size && !text_of("SLURM_PROCID").empty()) {
    return {"srun", "SLURM_STEP_NUM_TASKS", *size};
  }
  return {};
}

LaunchEnvironment of_environment(Launcher const& started) {
  auto const rank = rank_of("RANK"), size = size_of("WORLD_SIZE");
  GPUPS_REQUIRE(rank.has_value(),
                "WORLD_SIZE is {} in the environment and RANK is not set (the rank of this process is unknown): set "
                "both, or neither",
                *size);
  GPUPS_REQUIRE(*rank < *size, "RANK is {} and WORLD_SIZE is {} (ranks count from 0): set RANK below WORLD_SIZE", *rank,
                *size);
  GPUPS_REQUIRE(*size > 1 || started.size <= 1,
                "WORLD_SIZE is 1 and {} is {} (each process that {} has started would train alone): unset RANK "
                "and WORLD_SIZE",
                started.variable, started.size, started.name);
  if (*size == 1) return {};
  std::string const host = text_of("MASTER_ADDR");
  auto const port = port_of("GPUPS_PORT"), master_port = port ? port : port_of("MASTER_PORT");
  GPUPS_REQUIRE(!host.empty(),
                "WORLD_SIZE is {} and MASTER_ADDR is not set (rank 0 cannot be found): set it to the host of rank 0, "
                "or to 127.0.0.1 if all ranks are on one machine",
                *size);
  GPUPS_REQUIRE(master_port.has_value(),
                "WORLD_SIZE is {} and neither GPUPS_PORT nor MASTER_PORT is set (rank 0 cannot be found): set one of "
                "them to a port that is free on the machine of rank 0",
                *size);
  return {.kind = LaunchEnvironment::Kind::kEnvironment,
          .rank = Rank{static_cast<std::uint32_t>(*rank)},
          .size = *size,
          .local_rank = rank_of("LOCAL_RANK"),
          .hosts = {host},
          .port = *master_port,
          .token = token_of_environment()};
}

LaunchEnvironment of_pmix(Launcher const& started) {
  if (started.size == 1) return {};
  auto const rank = rank_of("PMIX_RANK");
  GPUPS_REQUIRE(rank.has_value(),
                "PMIX_NAMESPACE is set and PMIX_RANK is not (the rank of this process is unknown): start it by mpirun "
                "or srun --mpi=pmix");
  auto local_rank = rank_of("OMPI_COMM_WORLD_LOCAL_RANK");
  if (!local_rank) local_rank = rank_of("SLURM_LOCALID");
  return {.kind = LaunchEnvironment::Kind::kPmix,
          .rank = Rank{static_cast<std::uint32_t>(*rank)},
          .size = started.size,
          .local_rank = local_rank};
}

// Throws Error if RANK and WORLD_SIZE contradict PMIx. They may be left over in a shell, which would give all processes
// the same rank, or belong to another job. If only one of them is set, it is ignored.
void require_same(Launcher const& started) {
  if (text_of("RANK").empty() || text_of("WORLD_SIZE").empty() || text_of("PMIX_RANK").empty()) return;
  auto const rank = rank_of("RANK"), size = size_of("WORLD_SIZE"), pmix_rank = rank_of("PMIX_RANK");
  bool const is_same = rank == pmix_rank && (started.size == 0 || started.size == *size);
  GPUPS_REQUIRE(is_same,
                "RANK is {} and WORLD_SIZE is {}, but for PMIx this process is rank {} of {} (these contradict each "
                "other): unset RANK and WORLD_SIZE, or unset PMIX_NAMESPACE to use them",
                *rank, *size, *pmix_rank, started.size > 0 ? std::to_string(started.size) : "an unknown number");
}

}  // namespace

LaunchEnvironment detect_launch() {
  Launcher const started = launcher();
  // torchrun inside of a step of srun has started this process itself, so it takes precedence over srun.
  bool const by_torchrun = !text_of("TORCHELASTIC_RUN_ID").empty() && !text_of("WORLD_SIZE").empty();
  // MPI_Init() in a process that mpirun has not started makes an MPI job of this process alone, and sets
  // PMIX_NAMESPACE.
  bool const is_mpi_alone = text_of("OMPI_MCA_ess") == "singleton";
  if (!by_torchrun && !is_mpi_alone && !text_of("PMIX_NAMESPACE").empty()) {
    require_same(started);
    return of_pmix(started);
  }
  if (!text_of("WORLD_SIZE").empty()) return of_environment(started);
  GPUPS_REQUIRE(
      started.size <= 1,
      "{} has started {} processes that cannot find each other (without PMIx each process would train alone): {}",
      started.name, started.size,
      started.name == "srun" ? "start them by srun --mpi=pmix" : "use an mpirun with PMIx, such as that of Open MPI");
  GPUPS_REQUIRE(text_of("RANK").empty(),
                "RANK is \"{}\" in the environment and WORLD_SIZE is not set (the number of ranks is unknown): set "
                "both, or neither",
                text_of("RANK"));
  return {};
}

}  // namespace gpups::comm
