// SPDX-License-Identifier: Apache-2.0
// The facts of a process and its machine that the doctor checks. Plain data, so that tests can define machines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpups::trainer {

// The build of the program.
struct ProgramFacts {
  std::string version{}, host_arch{};       // for example "portable (x86-64-v4)"
  std::string cuda_architectures{};         // for example "80;90"; empty: built without CUDA
  std::string ucx_header{}, ucx_library{};  // versions, for example "1.13"; empty: built without UCX
  bool pmix = false, hwloc = false;
};

// The resources and limits of the machine, or of the container.
struct MachineFacts {
  std::string host{};
  bool host_resolves = true;
  std::string allowed_cores{};  // for example "0-3,8"
  int cores = 1;                // number of allowed cores
  int machine_cores = 1;
  std::optional<double> cpu_limit{};  // CPU time that the container may use, in cores
  std::optional<std::uint64_t> shared_memory_bytes{}, shared_memory_free_bytes{};  // of /dev/shm, if it exists
  std::optional<std::uint64_t> locked_bytes{};  // limit of locked memory; nothing: no limit
  std::uint64_t open_files = 1024;
  std::optional<int> ptrace_scope{};  // of the kernel module Yama, if it is active
  bool memory_readable = true;        // a process can read the memory of another process of the same user
};

// The GPUs and their driver.
struct GpuFacts {
  struct Gpu {
    std::string address{};                    // on the PCI bus
    int capability = 0;                       // 90 for 9.0
    std::uint64_t free_bytes = 0, bytes = 0;  // of its memory; 0: unknown
    std::string error{};                      // of the query
    std::string near_cores{};                 // empty: unknown
  };
  std::string kernel_driver{};                  // the driver's description of itself; empty: not loaded
  int driver_version = 0, toolkit_version = 0;  // of CUDA, for example 12040; 0: none
  std::vector<Gpu> gpus{};
  std::vector<std::pair<int, int>> cannot_reach{};  // devices without access to each other's memory
};

// How the process joins the job.
struct RendezvousFacts {
  struct Host {
    std::string name{};
    std::string error{};  // of the name's look-up; empty: none
    bool loopback = false;
  };
  struct Token {
    std::string file{};      // empty: the environment variable GPUPS_TOKEN has the token
    std::uint32_t mode = 0;  // permissions of the file
    std::size_t bytes = 0;
    std::string error{};  // of reading the file
  };
  std::string launcher{};  // description of the launcher; empty: none
  std::string error{};     // why the launch environment is invalid
  int rank = 0, size = 1;  // size 0: known only when the ranks join
  std::optional<int> local_rank{};
  std::vector<Host> hosts{};  // the hosts at which rank 0 may listen
  int port = 0;
  int port_error = 0;  // errno of listening at the port; 0: no error, or not rank 0
  std::optional<Token> token{};
};

// The cores of a rank that has joined the job.
struct BindingFacts {
  std::string host{}, bound_cores{};
  int local_rank = 0, local_ranks = 1;
  int cores_shared_by = 1;  // number of ranks that are bound to the same cores
};

// The transports of UCX on this machine.
struct TransportFacts {
  struct Resource {
    enum class Kind { kNetwork, kSharedMemory, kDevice, kSelf };
    std::string name{}, device{};
    Kind kind = Kind::kNetwork;
  };
  std::vector<Resource> resources{};
  std::string wanted_devices{};     // value of UCX_NET_DEVICES
  std::string wanted_transports{};  // value of UCX_TLS
};

// The run of a configuration.
struct RunFacts {
  std::string config{};                                         // path of the configuration file
  std::vector<std::string> errors{};                            // messages of the errors that stop the run
  std::vector<std::string> notices{};                           // of Data::notices()
  std::vector<std::pair<std::string, std::string>> settings{};  // see common_settings(); empty: no valid configuration
  double join_timeout_s = 120, peer_timeout_s = 30;
  int ranks = 1;       // as threads of a process
  std::string data{};  // description of the data; empty: not readable
  std::uint64_t data_digest = 0;
  std::string folder{};  // of the run; empty: cannot be created, or not rank 0
  std::uint64_t folder_free_bytes = 0;
  std::uint64_t table_bytes = 0;  // of all rows, with optimizer state
  std::string device{};           // empty: does not exist
};

// All facts of one rank.
struct Facts {
  ProgramFacts program{};
  MachineFacts machine{};
  GpuFacts gpu{};
  RendezvousFacts rendezvous{};
  TransportFacts transport{};
  std::optional<RunFacts> run{};
  std::optional<BindingFacts> binding{};
};

}  // namespace gpups::trainer
