// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/machine/counters.hpp"

#include <algorithm>
#include <bit>

namespace gpups::emulator {
namespace {

constexpr std::uint32_t kLanes = 32;
constexpr std::uint32_t kBanks = 32, kBankBytes = 4;

// Returns the addresses of the lanes that take part.
std::vector<std::uint64_t> addresses_of(std::uint32_t lanes, std::array<std::uint64_t, kLanes> const& by_lane) {
  std::vector<std::uint64_t> addresses;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) != 0) addresses.push_back(by_lane[lane]);
  }
  return addresses;
}

// Returns how many distinct sectors the accesses touch. An aligned access of at most 32 bytes is in one sector.
std::uint64_t count_sectors(std::vector<std::uint64_t> addresses) {
  for (std::uint64_t& address : addresses) address /= kSectorBytes;
  std::sort(addresses.begin(), addresses.end());
  return static_cast<std::uint64_t>(std::unique(addresses.begin(), addresses.end()) - addresses.begin());
}

// Returns the cycles beyond the first one of an access to shared memory: a bank delivers one word per cycle. Accesses
// of 8 bytes take place in two halves of the warp, those of 16 bytes in four quarters.
std::uint64_t count_conflicts(std::uint32_t lanes, std::array<std::uint64_t, kLanes> const& by_lane,
                              std::uint32_t bytes) {
  std::uint32_t const words = std::max(bytes / kBankBytes, 1U), group = kLanes / words;
  std::uint64_t conflicts = 0;
  for (std::uint32_t first = 0; first < kLanes; first += group) {
    std::array<std::vector<std::uint64_t>, kBanks> of_bank;
    for (std::uint32_t lane = first; lane < first + group; ++lane) {
      if ((lanes >> lane & 1) == 0) continue;
      for (std::uint32_t word = 0; word < words; ++word) {
        std::uint64_t const number = by_lane[lane] / kBankBytes + word;
        auto& bank = of_bank[number % kBanks];
        if (std::find(bank.begin(), bank.end(), number) == bank.end()) bank.push_back(number);
      }
    }
    std::size_t most = 1;
    for (auto const& bank : of_bank) most = std::max(most, bank.size());
    conflicts += most - 1;
  }
  return conflicts;
}

}  // namespace

SectorCounts& SectorCounts::operator+=(SectorCounts const& other) {
  accesses += other.accesses;
  sectors += other.sectors;
  bytes += other.bytes;
  return *this;
}

KernelCounts& KernelCounts::operator+=(KernelCounts const& other) {
  launches += other.launches;
  blocks += other.blocks;
  instructions += other.instructions;
  loads += other.loads;
  stores += other.stores;
  atomics += other.atomics;
  shared_accesses += other.shared_accesses;
  bank_conflicts += other.bank_conflicts;
  partial_accesses += other.partial_accesses;
  return *this;
}

void AccessCounter::begin(std::uint32_t threads) {
  threads_ = threads;
  sites_.clear();
  open_.clear();
  counts_ = {};
}

std::uint32_t AccessCounter::lanes_of_warp(std::uint32_t warp) const {
  std::uint32_t const lanes = std::min(kLanes, threads_ - warp * kLanes);
  return lanes == kLanes ? ~0U : (1U << lanes) - 1;
}

void AccessCounter::count(std::uint32_t thread, Instruction const& instruction, std::uint64_t address,
                          std::uint32_t bytes, AccessKind kind, bool is_shared) {
  auto const [at, fresh] = sites_.try_emplace(&instruction);
  Site& site = at->second;
  if (fresh) site = {static_cast<std::uint32_t>(sites_.size()), std::vector<std::uint32_t>(threads_, 0)};
  std::uint64_t const execution = site.executed[thread]++;
  std::uint32_t const warp = thread / kLanes, lane = thread % kLanes;
  std::uint64_t const key = execution << 32 | std::uint64_t{site.number} << 5 | warp;
  auto const found = open_.try_emplace(key).first;
  WarpAccess& access = found->second;
  access.lanes |= 1U << lane;
  access.bytes = bytes;
  access.kind = kind;
  access.is_shared = is_shared;
  access.addresses[lane] = address;
  if (access.lanes != lanes_of_warp(warp)) return;
  add(access, false);
  open_.erase(found);
}

void AccessCounter::add(WarpAccess const& access, bool is_partial) {
  if (is_partial) ++counts_.partial_accesses;
  if (access.is_shared) {
    ++counts_.shared_accesses;
    counts_.bank_conflicts += count_conflicts(access.lanes, access.addresses, access.bytes);
    return;
  }
  SectorCounts& counts = access.kind == AccessKind::kLoad    ? counts_.loads
                         : access.kind == AccessKind::kStore ? counts_.stores
                                                             : counts_.atomics;
  ++counts.accesses;
  counts.sectors += count_sectors(addresses_of(access.lanes, access.addresses));
  counts.bytes += static_cast<std::uint64_t>(std::popcount(access.lanes)) * access.bytes;
}

void AccessCounter::end(KernelCounts& counts) {
  for (auto const& [key, access] : open_) add(access, true);
  open_.clear();
  counts += counts_;
}

}  // namespace gpups::emulator
