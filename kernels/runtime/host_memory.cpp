// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/host_memory.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include "kernels/base/check.hpp"
#include "kernels/runtime/cuda_runtime.hpp"

namespace gpups::kernels {

namespace {

namespace fs = std::filesystem;

// Returns the number after `name` in a file of lines "name number", or the first number of the file if the name is
// empty. Returns nothing if there is none.
std::optional<std::uint64_t> number_in(fs::path const& file, std::string const& name = "") {
  std::ifstream in(file);
  std::string word;
  std::uint64_t number = 0;
  if (name.empty()) return in >> number ? std::optional(number) : std::nullopt;
  while (in >> word) {
    if (word == name) return in >> number ? std::optional(number) : std::nullopt;
  }
  return std::nullopt;
}

// The files of one version of control groups that contain the limit and the use of memory.
struct GroupFiles {
  char const* line;  // its line in /proc/self/cgroup, from the first colon to the path of the group
  char const* folder;
  char const* limit;
  char const* used;
  char const* pages_of_files[2];  // names in memory.stat: pages that Linux frees first
};
constexpr GroupFiles kVersions[] = {
    {"memory:",
     "sys/fs/cgroup/memory",
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file"}},
    {":", "sys/fs/cgroup", "memory.max", "memory.current", {"inactive_file", "active_file"}},
};

// Lowers `memory` to what the group in `folder` allows, if it has a limit. Groups around it may have limits too.
void lower_to(HostMemory& memory, GroupFiles const& files, fs::path const& folder) {
  auto const limit = number_in(folder / files.limit), used = number_in(folder / files.used);
  if (!limit || !used) return;  // no such group, or the limit is "max"
  std::uint64_t taken = *used;
  for (char const* name : files.pages_of_files) {
    taken -= std::min(taken, number_in(folder / "memory.stat", name).value_or(0));
  }
  memory.total = std::min(memory.total, *limit);
  memory.available = std::min(memory.available, *limit - std::min(*limit, taken));
}

}  // namespace

std::uint64_t memory_shortage(HostMemory const& memory, std::uint64_t bytes) {
  constexpr std::uint64_t kSpareShare = 8;
  std::uint64_t const needed = bytes + memory.total / kSpareShare;
  return needed - std::min(needed, memory.available);
}

HostMemory host_memory(fs::path const& root) {
  constexpr std::uint64_t kKilobyte = 1024;
  HostMemory memory;
  auto const total = number_in(root / "proc/meminfo", "MemTotal:");
  auto const available = number_in(root / "proc/meminfo", "MemAvailable:");
  if (total && available) memory = {*total * kKilobyte, *available * kKilobyte};
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    std::string const after_number = line.substr(std::min(line.find(':'), line.size() - 1) + 1);
    for (GroupFiles const& files : kVersions) {
      if (!after_number.starts_with(files.line)) continue;
      fs::path const top = root / files.folder;
      fs::path const group = fs::path(after_number.substr(std::string(files.line).size())).relative_path();
      for (fs::path at = group; !at.empty(); at = at.parent_path()) lower_to(memory, files, top / at);
      lower_to(memory, files, top);
    }
  }
  return memory;
}

namespace {

constexpr std::size_t kAlign = 4096;

}  // namespace

void PinnedDelete::operator()(std::byte* block) const noexcept {
  device >= 0 ? cuda::release_pinned(device, block) : std::free(block);
}

PinnedPtr allocate_pinned(Device device, std::size_t bytes) {
  void* const block = !device.is_host() ? cuda::allocate_pinned(device.index, bytes)
                                        : std::aligned_alloc(kAlign, (bytes + kAlign - 1) / kAlign * kAlign);
  GPUPS_REQUIRE(block != nullptr,
                "no pinned memory of the host for {} bytes (data of GPUs are copied through it): use fewer ranks",
                bytes);
  return PinnedPtr(static_cast<std::byte*>(block), PinnedDelete{device.is_host() ? -1 : device.index});
}

}  // namespace gpups::kernels
