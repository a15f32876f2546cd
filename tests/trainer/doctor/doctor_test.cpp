// SPDX-License-Identifier: Apache-2.0
// Findings of the doctor for synthetic machines.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <string>

#include "trainer/doctor/checks.hpp"
#include "trainer/doctor/report.hpp"

namespace gpups::trainer::doctor_test {
namespace {

using Level = Finding::Level;
using Kind = TransportFacts::Resource::Kind;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// The facts of a machine without problems.
Facts healthy() {
  Facts facts;
  facts.program = {.version = "0.1.0", .cuda_architectures = "80;90", .ucx_header = "1.13", .ucx_library = "1.13"};
  facts.machine = {.host = "node7",
                   .allowed_cores = "0-15",
                   .cores = 16,
                   .machine_cores = 16,
                   .shared_memory_bytes = 64 * kGiB,
                   .shared_memory_free_bytes = 63 * kGiB,
                   .open_files = 65536,
                   .ptrace_scope = 0};
  GpuFacts::Gpu const gpu{
      .address = "0000:17:00.0", .capability = 90, .free_bytes = 80 * kGiB, .bytes = 80 * kGiB, .near_cores = "0-7"};
  facts.gpu = {.kernel_driver = "NVRM", .driver_version = 13000, .toolkit_version = 13000, .gpus = {gpu, gpu}};
  facts.rendezvous = {.launcher = "a launcher",
                      .rank = 0,
                      .size = 4,
                      .hosts = {{.name = "node7"}},
                      .port = 29500,
                      .token = RendezvousFacts::Token{.file = "token", .mode = 0600, .bytes = 44}};
  facts.transport.resources = {{"tcp", "lo", Kind::kNetwork},
                               {"tcp", "eth0", Kind::kNetwork},
                               {"rc_mlx5", "mlx5_0:1", Kind::kNetwork},
                               {"posix", "memory", Kind::kSharedMemory},
                               {"cma", "memory", Kind::kSharedMemory}};
  facts.run = RunFacts{.config = "run.toml",
                       .data = "the data has 7 entities",
                       .folder = "runs/1",
                       .folder_free_bytes = 100 * kGiB,
                       .table_bytes = kGiB,
                       .device = "cuda:0"};
  return facts;
}

// Expects that the facts give one finding that is not ok, with this level and these words, in the form "what (why):
// what to do".
void expect_only(Facts const& facts, Level level, std::initializer_list<char const*> words) {
  int count = 0;
  for (Finding const& finding : run_checks(facts)) {
    if (finding.level == Level::kOk) continue;
    ++count;
    EXPECT_EQ(finding.level, level) << finding.text;
    for (char const* word : words)
      EXPECT_NE(finding.text.find(word), std::string::npos) << word << ": " << finding.text;
    std::size_t const why = finding.text.find('('), what_to_do = finding.text.rfind(": ");
    EXPECT_LT(why, what_to_do) << finding.text;
    EXPECT_NE(what_to_do, std::string::npos) << finding.text;
  }
  EXPECT_EQ(count, 1) << *words.begin();
}

TEST(Doctor, HealthyMachineHasNoFindings) {
  Findings const findings = run_checks(healthy());
  EXPECT_GE(findings.size(), checks().size() / 2);
  for (Finding const& finding : findings) EXPECT_EQ(finding.level, Level::kOk) << finding.text;
  EXPECT_TRUE(can_join(healthy()));
}

TEST(Doctor, PlainHostHasNoFindings) {
  Facts facts = healthy();
  facts.program = {.version = "0.1.0"};
  facts.gpu = {};
  facts.rendezvous = {};
  facts.transport = {};
  facts.run.reset();
  for (Finding const& finding : run_checks(facts)) EXPECT_EQ(finding.level, Level::kOk) << finding.text;
}

TEST(DoctorProgram, ReportsUcxOlderThanItsHeaders) {
  Facts facts = healthy();
  facts.program.ucx_library = "1.9";
  expect_only(facts, Level::kWarning, {"UCX library is 1.9", "built for 1.13", "LD_LIBRARY_PATH"});
}

TEST(DoctorMachine, ReportsTooLittleSharedMemory) {
  Facts facts = healthy();
  facts.machine.shared_memory_bytes = facts.machine.shared_memory_free_bytes = 64 * kMiB;  // Docker's default
  expect_only(facts, Level::kWarning, {"/dev/shm has 64.0 MiB", "--shm-size"});
  facts.machine.shared_memory_bytes = 8 * kGiB;
  expect_only(facts, Level::kWarning, {"64.0 MiB free of 8.0 GiB", "remove unused files"});
  facts.machine.shared_memory_bytes.reset();
  expect_only(facts, Level::kWarning, {"no /dev/shm", "mount a tmpfs"});
}

TEST(DoctorMachine, ReportsLockedMemoryLimitWithRdma) {
  Facts facts = healthy();
  facts.machine.locked_bytes = 64 << 10;
  expect_only(facts, Level::kWarning, {"can lock only 64.0 KiB", "--ulimit memlock=-1"});
  std::erase_if(facts.transport.resources, [](auto const& way) { return way.name == "rc_mlx5"; });
  for (Finding const& finding : run_checks(facts)) EXPECT_EQ(finding.level, Level::kOk) << finding.text;
}

TEST(DoctorMachine, ReportsWhyProcessMemoryIsUnreadable) {
  Facts facts = healthy();
  facts.machine.memory_readable = false;
  facts.machine.ptrace_scope = 2;
  expect_only(facts, Level::kWarning, {"ptrace_scope is 2", "copied twice", "sysctl", "SYS_PTRACE"});
  facts.machine.ptrace_scope.reset();
  expect_only(facts, Level::kWarning,
              {"the container runtime forbids it", "start the container with --cap-add=SYS_PTRACE"});
}

TEST(DoctorMachine, ReportsTooFewFileDescriptors) {
  Facts facts = healthy();
  facts.machine.open_files = 256;
  expect_only(facts, Level::kWarning, {"256 files can be open", "ulimit -n 4096"});
  facts.machine.open_files = 4096;
  facts.rendezvous.size = 1000;
  expect_only(facts, Level::kWarning, {"4096 files can be open", "ulimit -n 8256"});
}

TEST(DoctorMachine, ReportsCpuLimitOfContainer) {
  Facts facts = healthy();
  facts.machine.cpu_limit = 2.5;
  expect_only(facts, Level::kWarning, {"2.5 of its 16 cores", "--cpuset-cpus"});
  facts.machine.cpu_limit = 16;
  EXPECT_NE(worst_of(run_checks(facts)), Finding::Level::kProblem);
}

TEST(DoctorGpus, ReportsOldOrMissingDriver) {
  Facts facts = healthy();
  facts.gpu.gpus.clear();
  facts.gpu.driver_version = 12040;
  expect_only(facts, Level::kWarning, {"driver supports CUDA 12.4", "built with CUDA 13.0", "update the driver"});
  facts.gpu.driver_version = 0;
  expect_only(facts, Level::kWarning, {"libcuda.so is missing", "--gpus all"});
}

TEST(DoctorGpus, ReportsDevicesOlderThanTheBuildSupports) {
  Facts facts = healthy();
  facts.gpu.gpus[1].capability = 75;
  expect_only(facts, Level::kProblem, {"cuda:1 has compute capability 7.5", "code for 80 and later"});
  facts = healthy();
  facts.gpu.gpus[1].capability = 120;  // later ones are fine
  EXPECT_NE(worst_of(run_checks(facts)), Finding::Level::kProblem);
}

TEST(DoctorGpus, ReportsBuildWithoutDeviceCode) {
  Facts facts = healthy();
  facts.program.cuda_architectures.clear();
  facts.gpu = {.kernel_driver = "NVRM"};
  expect_only(facts, Level::kWarning, {"no device code", "build with nvcc"});
}

TEST(DoctorGpus, ReportsDevicesWithoutPeerAccess) {
  Facts facts = healthy();
  facts.gpu.cannot_reach = {{0, 1}};
  expect_only(facts, Level::kWarning, {"cuda:0 and cuda:1", "through the host"});
}

TEST(DoctorGpus, ReportsErrorOfADevice) {
  Facts facts = healthy();
  facts.gpu.gpus[0].error = "CUDA says 'busy' (while reading): check nvidia-smi";
  expect_only(facts, Level::kProblem, {"cuda:0 does not respond", "'busy'"});
}

TEST(DoctorTransports, ReportsMissingNetwork) {
  Facts facts = healthy();
  facts.transport.resources.erase(facts.transport.resources.begin() + 1, facts.transport.resources.begin() + 3);
  expect_only(facts, Level::kWarning, {"no network except the loopback", "--network=host"});
}

TEST(DoctorTransports, ReportsBuildWithoutUcx) {
  Facts facts = healthy();
  facts.program.ucx_header = facts.program.ucx_library = "";
  expect_only(facts, Level::kProblem, {"no UCX", "libucx-dev"});
  EXPECT_FALSE(can_join(facts));
}

TEST(DoctorTransports, ReportsUnknownDevicesInUcxSetting) {
  Facts facts = healthy();
  for (char const* fine : {"all", "eth0", "mlx5_0:1,lo", "^eth0"}) {
    facts.transport.wanted_devices = fine;
    for (Finding const& finding : run_checks(facts)) EXPECT_EQ(finding.level, Level::kOk) << finding.text;
  }
  facts.transport.wanted_devices = "eth0,ib7";
  expect_only(facts, Level::kWarning, {"contains ib7", "lo, eth0, mlx5_0:1"});
}

TEST(DoctorBootstrap, ReportsErrorsOfTheEnvironment) {
  Facts facts = healthy();
  facts.rendezvous.error = "RANK is not set (it is one of WORLD_SIZE ranks): set it";
  expect_only(facts, Level::kProblem, {"RANK is not set"});
  EXPECT_FALSE(can_join(facts));
}

TEST(DoctorBootstrap, ReportsUnresolvableAddressOfRank0) {
  Facts facts = healthy();
  facts.rendezvous.hosts[0].error = "Name or service not known";
  expect_only(facts, Level::kProblem, {"node7 has no address", "MASTER_ADDR", "DNS"});
  EXPECT_FALSE(can_join(facts));
  facts.rendezvous.hosts.push_back({.name = "10.0.0.7"});  // another address of rank 0
  expect_only(facts, Level::kWarning, {"node7 has no address"});
}

TEST(DoctorBootstrap, ReportsUnresolvableHostName) {
  Facts facts = healthy();
  facts.machine.host_resolves = false;
  expect_only(facts, Level::kWarning, {"node7, has no address", "/etc/hosts"});
}

TEST(DoctorBootstrap, ReportsUnusablePort) {
  Facts facts = healthy();
  facts.rendezvous.port_error = EADDRINUSE;
  expect_only(facts, Level::kProblem, {"port 29500 is in use", "MASTER_PORT"});
  EXPECT_FALSE(can_join(facts));
  facts.rendezvous.port = 80;
  facts.rendezvous.port_error = EACCES;
  expect_only(facts, Level::kProblem, {"port 80 is reserved for root", "from 1024"});
  facts.rendezvous.port_error = EMFILE;
  expect_only(facts, Level::kProblem, {"port 80 cannot be used", "Too many open files"});
}

TEST(DoctorBootstrap, ReportsMissingTokenOnANetwork) {
  Facts facts = healthy();
  facts.rendezvous.token.reset();
  expect_only(facts, Level::kProblem, {"no token", "GPUPS_TOKEN_FILE"});
  facts.rendezvous.hosts[0].loopback = true;
  EXPECT_NE(worst_of(run_checks(facts)), Finding::Level::kProblem);
}

TEST(DoctorBootstrap, ReportsUnsafeOrUnreadableToken) {
  Facts facts = healthy();
  facts.rendezvous.token->mode = 0644;
  expect_only(facts, Level::kWarning, {"token has mode 644", "chmod 600 token"});
  facts.rendezvous.token->file.clear();  // in the environment
  EXPECT_TRUE(can_join(facts));
  facts.rendezvous.token = RendezvousFacts::Token{.file = "token", .mode = 0600, .bytes = 5};
  expect_only(facts, Level::kWarning, {"has 5 bytes", "guessed"});
  facts.rendezvous.token->bytes = 0;
  expect_only(facts, Level::kProblem, {"token is empty"});
  facts.rendezvous.token->error = "Permission denied";
  expect_only(facts, Level::kProblem, {"cannot be read (Permission denied"});
  facts.rendezvous.error = "GPUPS_TOKEN_FILE names token, which cannot be read (...): correct the name";
  expect_only(facts, Level::kProblem, {"GPUPS_TOKEN_FILE names token"});
  EXPECT_FALSE(can_join(facts));
}

TEST(DoctorBinding, ReportsSharedGpusAndCores) {
  Facts facts = healthy();
  facts.binding = BindingFacts{.host = "node7", .bound_cores = "0-7", .local_rank = 0, .local_ranks = 2};
  for (Finding const& finding : run_checks(facts)) EXPECT_EQ(finding.level, Level::kOk) << finding.text;
  facts.binding->local_ranks = 3;
  expect_only(facts, Level::kWarning, {"3 ranks share this machine's 2 GPUs", "one rank for each GPU"});
  facts.run->device = "host";
  EXPECT_EQ(run_checks(facts).size(), run_checks(healthy()).size() + 1);
  facts.binding->local_ranks = facts.binding->cores_shared_by = 17;
  expect_only(facts, Level::kWarning, {"17 ranks share this machine's 16 cores"});
  facts.machine.machine_cores = 64;
  expect_only(facts, Level::kWarning, {"17 ranks share 16 of this machine's 64 cores"});
  facts.binding->cores_shared_by = 1;  // each is bound to a core of its own
  EXPECT_EQ(run_checks(facts).size(), run_checks(healthy()).size() + 1);
}

TEST(DoctorRun, RejectsRanksAsThreadsOfAProcess) {
  Facts facts = healthy();
  facts.run->ranks = 2;
  expect_only(facts, Level::kProblem, {"run.ranks is 2", "remove run.ranks"});
}

TEST(DoctorRun, ReportsTooLittleDiskSpace) {
  Facts facts = healthy();
  facts.run->folder_free_bytes = 3 * kGiB / 2;
  expect_only(facts, Level::kWarning, {"1.5 GiB free", "the previous one is kept", "--run"});
  facts.run->folder_free_bytes = kGiB / 2;
  expect_only(facts, Level::kProblem, {"512.0 MiB free", "a checkpoint needs 1.0 GiB"});
}

TEST(DoctorRun, ReportsTooLittleDeviceMemory) {
  Facts facts = healthy();
  facts.run->table_bytes = 8 * kGiB;
  facts.gpu.gpus[0].free_bytes = kGiB;  // 4 ranks: 2 GiB each
  expect_only(facts, Level::kProblem, {"cuda:0 has 1.0 GiB free", "2.0 GiB"});
  facts.run->device = "cuda:1";
  EXPECT_NE(worst_of(run_checks(facts)), Finding::Level::kProblem);
}

TEST(DoctorRun, ReportsErrorsOfTheRun) {
  Facts facts = healthy();
  facts.run->errors = {"train.txt cannot be read (it is not there): check data.train"};
  expect_only(facts, Level::kProblem, {"train.txt cannot be read"});
}

TEST(DoctorRun, NoticesOfTheDataAreNotes) {
  Facts facts = healthy();
  facts.run->notices = {"7 triples of the test split, of 9, are in the training data"};
  Findings const findings = run_checks(facts);
  EXPECT_EQ(std::count(findings.begin(), findings.end(), note(facts.run->notices[0])), 1);
  EXPECT_EQ(worst_of(findings), Level::kNote);
}

}  // namespace
}  // namespace gpups::trainer::doctor_test
