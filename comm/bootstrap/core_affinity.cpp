// SPDX-License-Identifier: Apache-2.0
// Sets of cores as text, and system calls about cores.
#include "comm/bootstrap/core_affinity.hpp"

#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "comm/base/peer_error.hpp"
#include "kernels/base/check.hpp"
#include "kernels/runtime/cuda_runtime.hpp"

namespace gpups::comm {
namespace {

constexpr int kCoreMost = (1 << 16) - 1;  // larger numbers are mistakes

struct FreeCpuSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};

// A cpu_set_t with room for cores below `count`.
struct CpuSet {
  explicit CpuSet(int count) : set(CPU_ALLOC(count)), bytes(CPU_ALLOC_SIZE(count)) {
    GPUPS_REQUIRE(set != nullptr, "a set of {} cores cannot be allocated (the host is out of memory): free some memory",
                  count);
    CPU_ZERO_S(bytes, set.get());
  }
  std::unique_ptr<cpu_set_t, FreeCpuSet> set;
  std::size_t bytes;
};

[[noreturn]] void throw_bad_core_list(std::string const& text) {
  throw Error(fmt::format("'{}' is not a list of cores (the cores of a rank are unknown): write it as in 0-3,8",
                          peer_text(text)));
}

int parse_core(std::string_view digits, std::string const& text) {
  int core = -1;
  auto const [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), core);
  if (error != std::errc{} || stop != digits.data() + digits.size() || core < 0 || core > kCoreMost)
    throw_bad_core_list(text);
  return core;
}

}  // namespace

std::vector<int> parse_core_list(std::string const& text) {
  std::string_view rest = text;
  while (!rest.empty() && (rest.back() == '\n' || rest.back() == ' '))
    rest.remove_suffix(1);  // system files end with a newline
  std::vector<std::pair<int, int>> ranges;
  for (bool more = !rest.empty(); more;) {
    std::size_t const comma = rest.find(',');
    std::string_view const range = rest.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
    std::size_t const dash = range.find('-');
    int const first = parse_core(range.substr(0, dash), text);
    int const last = dash == std::string_view::npos ? first : parse_core(range.substr(dash + 1), text);
    if (last < first) throw_bad_core_list(text);
    ranges.emplace_back(first, last);
  }
  // The text may come from another rank and repeat cores many times; each core is added once.
  std::sort(ranges.begin(), ranges.end());
  std::vector<int> cores;
  for (auto const& [first, last] : ranges) {
    for (int core = cores.empty() ? first : std::max(first, cores.back() + 1); core <= last; ++core) {
      cores.push_back(core);
    }
  }
  return cores;
}

std::string format_core_list(std::vector<int> const& cores) {
  std::vector<int> sorted = cores;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  std::vector<std::string> ranges;
  for (std::size_t first = 0, end = 0; first < sorted.size(); first = end) {
    end = first + 1;
    while (end < sorted.size() && sorted[end] == sorted[end - 1] + 1) ++end;
    int const from = sorted[first], to = sorted[end - 1];
    ranges.push_back(from == to ? fmt::to_string(from) : fmt::format("{}-{}", from, to));
  }
  return fmt::format("{}", fmt::join(ranges, ","));
}

std::vector<int> allowed_cores() {
  // The call fails if the set has no room for all possible cores of the machine.
  for (int count = CPU_SETSIZE;; count *= 2) {
    CpuSet allowed(count);
    if (sched_getaffinity(0, allowed.bytes, allowed.set.get()) == 0) {
      std::vector<int> cores;
      for (int core = 0; core < count; ++core) {
        if (CPU_ISSET_S(static_cast<std::size_t>(core), allowed.bytes, allowed.set.get())) cores.push_back(core);
      }
      return cores;
    }
    GPUPS_REQUIRE(errno == EINVAL && count <= kCoreMost,
                  "the cores of this process cannot be read ({}; its share of them is unknown): check whether a "
                  "sandbox forbids sched_getaffinity",
                  std::strerror(errno));
  }
}

int cores_per_rank(int ranks) { return static_cast<int>(allowed_cores().size()) / ranks; }

std::string cores_near_gpus() {
  std::string all;
  for (int device = 0, count = cuda::device_count(); device < count; ++device) {
    std::ifstream in("/sys/bus/pci/devices/" + cuda::pci_address(device) + "/local_cpulist");
    std::string list;
    std::getline(in, list);
    all += (device > 0 ? ";" : "") + list;
  }
  return all;
}

std::vector<int> cores_near_rank(std::string const& near_gpus, int local_rank) {
  auto const lists = std::count(near_gpus.begin(), near_gpus.end(), ';') + 1;
  std::size_t begin = 0;
  for (auto skip = local_rank % lists; skip > 0; --skip) begin = near_gpus.find(';', begin) + 1;
  try {
    return parse_core_list(near_gpus.substr(begin, near_gpus.find(';', begin) - begin));
  } catch (Error const&) {
    return {};  // a list that cannot be read costs speed at most
  }
}

void bind_to_cores(std::vector<int> const& cores) {
  GPUPS_ASSERT(!cores.empty());
  CpuSet wanted(*std::max_element(cores.begin(), cores.end()) + 1);
  for (int const core : cores) CPU_SET_S(static_cast<std::size_t>(core), wanted.bytes, wanted.set.get());
  GPUPS_REQUIRE(sched_setaffinity(0, wanted.bytes, wanted.set.get()) == 0,
                "this process cannot be bound to cores {} ({}; ranks would share cores): let the launcher bind ranks, "
                "or give the container these cores",
                format_core_list(cores), std::strerror(errno));
}

}  // namespace gpups::comm
