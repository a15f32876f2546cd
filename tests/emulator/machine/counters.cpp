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

// Returns the distinct sectors that the accesses touch. An aligned access of at most 32 bytes is in one sector.
std::vector<std::uint64_t> sectors_of(std::vector<std::uint64_t> addresses) {
  for (std::uint64_t& address : addresses) address /= kSectorBytes;
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  return addresses;
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
  distinct += other.distinct;
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
  exposed_loads = std::max(exposed_loads, other.exposed_loads);
  return *this;
}

void LaunchSectors::begin(std::uint64_t launch) {
  if (launch_ == launch) return;
  launch_ = launch;
  words_.clear();
}

bool LaunchSectors::add(std::uint64_t sector, AccessKind kind) {
  std::uint64_t& word = words_[sector / 64][static_cast<std::size_t>(kind)];
  std::uint64_t const bit = std::uint64_t{1} << sector % 64;
  bool const is_first = (word & bit) == 0;
  word |= bit;
  return is_first;
}

void AccessCounter::begin(std::uint32_t threads) {
  threads_ = threads;
  sites_.clear();
  open_.clear();
  counts_ = {};
  for (auto& sectors : sectors_) sectors.clear();
}

SectorCounts& AccessCounter::counts_of(AccessKind kind) {
  return kind == AccessKind::kLoad ? counts_.loads : kind == AccessKind::kStore ? counts_.stores : counts_.atomics;
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
  SectorCounts& counts = counts_of(access.kind);
  auto const sectors = sectors_of(addresses_of(access.lanes, access.addresses));
  auto& of_block = sectors_[static_cast<std::size_t>(access.kind)];
  of_block.insert(of_block.end(), sectors.begin(), sectors.end());
  ++counts.accesses;
  counts.sectors += sectors.size();
  counts.bytes += static_cast<std::uint64_t>(std::popcount(access.lanes)) * access.bytes;
}

void AccessCounter::end(KernelCounts& counts) {
  for (auto const& [key, access] : open_) add(access, true);
  open_.clear();
  counts.launch_sectors.begin(counts.launches);  // this launch is counted when it ends
  for (AccessKind const kind : {AccessKind::kLoad, AccessKind::kStore, AccessKind::kAtomic}) {
    for (std::uint64_t const sector : sectors_[static_cast<std::size_t>(kind)]) {
      counts_of(kind).distinct += counts.launch_sectors.add(sector, kind) ? 1 : 0;
    }
  }
  counts += counts_;
}

}  // namespace gpups::emulator
