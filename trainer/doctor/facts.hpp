// SPDX-License-Identifier: Apache-2.0
// What the doctor knows of a process and its machine. Plain data, so that tests can make up machines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gpups::trainer {

struct ProgramFacts {
  std::string version{}, host_arch{};
  std::string cuda_architectures{};         // as in "80;90"; empty: built without CUDA
  std::string ucx_header{}, ucx_library{};  // as in "1.13"; empty: built without UCX
  bool pmix = false, hwloc = false;
};

struct MachineFacts {
  std::string host{};
  bool host_resolves = true;
  std::string allowed_cores{};  // as in "0-3,8"
  int cores = 1;                // of those
  int machine_cores = 1;
  std::optional<double> cpu_limit{};  // cores' worth of time that the container may use
  std::optional<std::uint64_t> shared_memory_bytes{}, shared_memory_free_bytes{};  // of /dev/shm, where there is one
  std::optional<std::uint64_t> locked_bytes{};  // that a process may lock into memory; nothing: no limit
  std::uint64_t open_files = 1024;
  std::optional<int> ptrace_scope{};  // of the kernel's Yama, where it is there
  bool memory_readable = true;        // a process can read the memory of another of the same user
};

struct GpuFacts {
  struct Gpu {
    std::string address{};                    // on the PCI bus
    int capability = 0;                       // 90 for 9.0
    std::uint64_t free_bytes = 0, bytes = 0;  // 0: not asked for
    std::string error{};                      // of asking for all this
    std::string near_cores{};                 // empty: not known
  };
  std::string kernel_driver{};                  // its own words; empty: not loaded
  int driver_version = 0, toolkit_version = 0;  // of CUDA, as in 12040; 0: not there
  std::vector<Gpu> gpus{};
  std::vector<std::pair<int, int>> cannot_reach{};  // devices without access to each other's memory
};

struct RendezvousFacts {
  struct Host {
    std::string name{};
    std::string error{};  // of looking it up; empty: none
    bool loopback = false;
  };
  struct Token {
    std::string file{};      // empty: it is in the environment itself
    std::uint32_t mode = 0;  // permissions of the file
    std::size_t bytes = 0;
    std::string error{};  // of reading the file
  };
  std::string launcher{};  // in words; empty: alone
  std::string error{};     // why the environment makes no sense
  int rank = 0, size = 1;  // size 0: the launcher says it when ranks meet
  std::optional<int> local_rank{};
  std::vector<Host> hosts{};  // where rank 0 is looked for
  int port = 0;
  int port_error = 0;  // errno of listening at the port; 0: none, or not for this rank to try
  std::optional<Token> token{};
};

// Of a rank that has joined the others.
struct BindingFacts {
  std::string host{}, bound_cores{};
  int local_rank = 0, local_ranks = 1;
  int cores_shared_by = 1;  // ranks that are bound to the same cores
};

struct TransportFacts {
  struct Resource {
    enum class Kind { kNetwork, kSharedMemory, kDevice, kSelf };
    std::string name{}, device{};
    Kind kind = Kind::kNetwork;
  };
  std::vector<Resource> resources{};
  std::string wanted_devices{};     // UCX_NET_DEVICES
  std::string wanted_transports{};  // UCX_TLS
};

// Of a run that a configuration describes.
struct RunFacts {
  std::string config{};                                         // its file
  std::vector<std::string> errors{};                            // what stops the run, in the words of what was tried
  std::vector<std::string> notices{};                           // of reading the data
  std::vector<std::pair<std::string, std::string>> settings{};  // that all ranks have in common; empty: none is usable
  double join_timeout_s = 120, peer_timeout_s = 30;
  int ranks = 1;       // as threads of a process
  std::string data{};  // what was read, in words; empty: nothing
  std::uint64_t data_digest = 0;
  std::string folder{};  // of the run; empty: it cannot be made, or is another rank's to make
  std::uint64_t folder_free_bytes = 0;
  std::uint64_t table_bytes = 0;  // of all rows, with the optimizer's state
  std::string device{};           // empty: it is not there
};

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
