// SPDX-License-Identifier: Apache-2.0
// Loads, stores and atomic operations, and addresses.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tests/emulator/machine/thread.hpp"
#include "tests/emulator/operations/dispatch.hpp"
#include "tests/emulator/operations/rules.hpp"

namespace gpups::emulator {
namespace {

// The sign of a narrow number is extended to the whole register.
template <class T>
Register extended(T value) {
  if constexpr (std::is_signed_v<T>) return static_cast<Register>(std::int64_t{value});
  return static_cast<Register>(value);
}

template <class T>
Outcome load(Thread& thread, Instruction const& i) {
  T value;
  std::memcpy(&value, checked_memory(thread, i, sizeof(T), Access::kRead), sizeof value);
  thread.registers[i.d] = extended(value);
  return Outcome::kNext;
}
template <class T>
Outcome load_vector(Thread& thread, Instruction const& i) {
  std::array<T, 8> values;
  auto const bytes = static_cast<std::uint32_t>(sizeof(T) * i.elements);
  std::memcpy(values.data(), checked_memory(thread, i, bytes, Access::kRead), bytes);
  for (std::uint8_t k = 0; k < i.elements; ++k) {
    if (i.vector[k] != kNoRegister) thread.registers[i.vector[k]] = extended(values[k]);
  }
  return Outcome::kNext;
}
template <class T>
Outcome store(Thread& thread, Instruction const& i) {
  T const value = static_cast<T>(thread.registers[i.b]);
  std::memcpy(checked_memory(thread, i, sizeof(T), Access::kWrite), &value, sizeof value);
  return Outcome::kNext;
}
template <class T>
Outcome store_vector(Thread& thread, Instruction const& i) {
  std::array<T, 8> values;
  for (std::uint8_t k = 0; k < i.elements; ++k) values[k] = static_cast<T>(thread.registers[i.vector[k]]);
  auto const bytes = static_cast<std::uint32_t>(sizeof(T) * i.elements);
  std::memcpy(checked_memory(thread, i, bytes, Access::kWrite), values.data(), bytes);
  return Outcome::kNext;
}

enum class AtomicOperation : std::uint8_t {
  kAdd,
  kMin,
  kMax,
  kExchange,
  kCompareAndSwap,
  kAnd,
  kOr,
  kXor,
  kIncrement,
  kDecrement,
  kNone
};

template <class T>
T updated(Thread const& thread, Instruction const& i, T old) {
  T const operand = read<T>(thread, i.b);
  auto const operation = static_cast<AtomicOperation>(i.operation);
  switch (operation) {
    case AtomicOperation::kAdd:
      return static_cast<T>(old + operand);
    case AtomicOperation::kMin:
      return std::min(old, operand);
    case AtomicOperation::kMax:
      return std::max(old, operand);
    case AtomicOperation::kExchange:
      return operand;
    case AtomicOperation::kCompareAndSwap:
      return old == operand ? read<T>(thread, i.c) : old;
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    switch (operation) {
      case AtomicOperation::kAnd:
        return static_cast<T>(old & operand);
      case AtomicOperation::kOr:
        return static_cast<T>(old | operand);
      case AtomicOperation::kXor:
        return static_cast<T>(old ^ operand);
      case AtomicOperation::kIncrement:
        return old >= operand ? T{0} : static_cast<T>(old + 1);
      case AtomicOperation::kDecrement:
        return old == 0 || old > operand ? operand : static_cast<T>(old - 1);
      default:
        break;
    }
  }
  return old;
}
template <class T>
Outcome update_atomically(Thread& thread, Instruction const& i) {
  std::uint8_t* const memory = checked_memory(thread, i, sizeof(T), Access::kWrite);
  T old;
  std::memcpy(&old, memory, sizeof old);
  T const value = updated(thread, i, old);
  std::memcpy(memory, &value, sizeof value);
  write<T>(thread, i.d, old);
  return Outcome::kNext;
}

Outcome is_in_space(Thread& thread, Instruction const& i) {
  std::uint64_t const address = thread.registers[i.a];
  bool const is_shared = address >= kSharedWindow && address < kSharedWindow + kSharedWindowBytes;
  bool const is_global = !is_shared && find_allocation(address, 1).has_value();
  bool const is_local = !is_shared && !is_global;
  write<bool>(thread, i.d,
              i.space == Space::kShared   ? is_shared
              : i.space == Space::kGlobal ? is_global
                                          : i.space == Space::kLocal && is_local);
  return Outcome::kNext;
}

// -- selection --

Space space_in(Statement const& s) {
  if (s.has("global") || s.has("const")) return Space::kGlobal;
  if (s.has("shared") || s.has("shared::cta")) return Space::kShared;
  if (s.has("local")) return Space::kLocal;
  return s.has("param") || s.has("param::entry") || s.has("param::func") ? Space::kParam : Space::kGeneric;
}

// Calls f with the type of a load: its width, and its sign.
template <class F>
Execute by_memory_type(Type type, F f) {
  if (type == Type::kS8) return f.template operator()<std::int8_t>();
  if (bytes_of(type) == 1) return f.template operator()<std::uint8_t>();
  return is_float(type) ? by_width(type, f) : by_integer(type, f);
}

Execute select_load(Statement const& s, Instruction& i) {
  i.space = space_in(s);
  if (i.elements > 1) return by_memory_type(s.type(), []<class T>() -> Execute { return load_vector<T>; });
  return by_memory_type(s.type(), []<class T>() -> Execute { return load<T>; });
}
Execute select_store(Statement const& s, Instruction& i) {
  i.space = space_in(s);
  if (i.elements > 1) return by_memory_type(s.type(), []<class T>() -> Execute { return store_vector<T>; });
  return by_memory_type(s.type(), []<class T>() -> Execute { return store<T>; });
}

AtomicOperation atomic_operation_in(Statement const& s) {
  constexpr char const* kNames[] = {"add", "min", "max", "exch", "cas", "and", "or", "xor", "inc", "dec"};
  for (std::uint8_t k = 0; k < std::size(kNames); ++k) {
    if (s.has(kNames[k])) return static_cast<AtomicOperation>(k);
  }
  return AtomicOperation::kNone;
}
Execute select_atomic(Statement const& s, Instruction& i) {
  i.space = space_in(s);
  i.mode = kAtomicMode;
  AtomicOperation const operation = atomic_operation_in(s);
  i.operation = static_cast<std::uint8_t>(operation);
  if (operation == AtomicOperation::kNone || s.has("async") || s.has("v2") || s.has("v4")) return nullptr;
  if (is_float(s.type())) return by_float(s.type(), []<class T>() -> Execute { return update_atomically<T>; });
  return by_integer(s.type(), []<class T>() -> Execute { return update_atomically<T>; });
}
Execute select_is_in_space(Statement const& s, Instruction& i) {
  i.space = space_in(s);
  return is_in_space;
}
}  // namespace

Outcome compute_address(Thread& thread, Instruction const& i) {
  thread.registers[i.d] = address_of(thread, i);
  return Outcome::kNext;
}

Rules const& memory_rules() {
  static Rules const rules{{"ld", select_load},     {"ldu", select_load},   {"st", select_store},
                           {"atom", select_atomic}, {"red", select_atomic}, {"isspacep", select_is_in_space}};
  return rules;
}

}  // namespace gpups::emulator
