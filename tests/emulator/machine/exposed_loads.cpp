// SPDX-License-Identifier: Apache-2.0
#include "tests/emulator/machine/exposed_loads.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

namespace gpups::emulator {
namespace {

std::span<RegisterId const> vector_of(Instruction const& i) {
  return {i.vector.data(), i.elements > 1 ? std::size_t{i.elements} : 0};
}

}  // namespace

std::uint32_t ExposedLoads::ready_at(Register const* registers, RegisterId id) const {
  if (id == kNoRegister || ready_.empty()) return begun_;
  auto const found = ready_.find(registers + id);
  return found == ready_.end() ? begun_ : std::max(begun_, found->second);
}

void ExposedLoads::set_result(Register const* registers, RegisterId id, std::uint32_t time) {
  if (id == kNoRegister) return;
  if (time > begun_) {
    ready_[registers + id] = time;
  } else if (!ready_.empty()) {
    ready_.erase(registers + id);
  }
}

void ExposedLoads::set_results(Register const* registers, Instruction const& i, std::uint32_t time) {
  set_result(registers, i.d, time);
  set_result(registers, i.d2, time);
  if (i.vector_is_source) return;
  for (RegisterId const id : vector_of(i)) set_result(registers, id, time);
}

void ExposedLoads::end_block() {
  begun_ = issued_;
  std::erase_if(ready_, [this](auto const& value) { return value.second <= begun_; });
}

void ExposedLoads::before(Register const* registers, Instruction const& i, bool is_skipped) {
  if (i.begins_block) end_block();
  now_ = ready_at(registers, i.predicate);
  if (!is_skipped) {
    // An address that is not relative to a register leaves `a` without a register.
    for (RegisterId const id : {i.a, i.b, i.c, i.e}) now_ = std::max(now_, ready_at(registers, id));
    for (RegisterId const id : vector_of(i)) {
      if (i.vector_is_source) now_ = std::max(now_, ready_at(registers, id));
    }
    set_results(registers, i, now_);
  }
  issued_ = std::max(issued_, now_);
  if (i.ends_block) end_block();
}

void ExposedLoads::began(Register const* registers, Instruction const& i) { set_results(registers, i, now_ + 1); }

}  // namespace gpups::emulator
