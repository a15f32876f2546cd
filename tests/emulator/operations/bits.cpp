// SPDX-License-Identifier: Apache-2.0
// Operations on bits: logic, shifts, fields, counts and permutations of bytes.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tests/emulator/machine/thread.hpp"
#include "tests/emulator/operations/dispatch.hpp"
#include "tests/emulator/operations/rules.hpp"

namespace gpups::emulator {
namespace {

template <class T>
constexpr std::uint32_t kBits = 8 * sizeof(T);

template <class T, T (*f)(T, T)>
Outcome binary(Thread& thread, Instruction const& i) {
  write<T>(thread, i.d, f(read<T>(thread, i.a), read<T>(thread, i.b)));
  return Outcome::kNext;
}
template <class T, T (*f)(T)>
Outcome unary(Thread& thread, Instruction const& i) {
  write<T>(thread, i.d, f(read<T>(thread, i.a)));
  return Outcome::kNext;
}
template <class T>
T conjunction(T a, T b) {
  return static_cast<T>(a & b);
}
template <class T>
T disjunction(T a, T b) {
  return static_cast<T>(a | b);
}
template <class T>
T exclusive_or(T a, T b) {
  return static_cast<T>(a ^ b);
}
template <class T>
T complement(T a) {
  return static_cast<T>(~a);
}
template <class T>
T is_zero(T a) {
  return a == 0 ? 1 : 0;
}
template <class T>
T reversed(T a) {
  T result = 0;
  for (std::uint32_t bit = 0; bit < kBits<T>; ++bit) {
    if ((a >> bit & 1) != 0) result = static_cast<T>(result | T{1} << (kBits<T> - 1 - bit));
  }
  return result;
}

// Shifts by the width or more give zeros, or copies of the sign.
template <class T>
Outcome shift_left(Thread& thread, Instruction const& i) {
  auto const bits = read<std::uint32_t>(thread, i.b);
  write<T>(thread, i.d, bits >= kBits<T> ? T{0} : static_cast<T>(read<T>(thread, i.a) << bits));
  return Outcome::kNext;
}
template <class T>
Outcome shift_right(Thread& thread, Instruction const& i) {
  auto const bits = read<std::uint32_t>(thread, i.b);
  T const a = read<T>(thread, i.a);
  T const all = std::is_signed_v<T> ? static_cast<T>(a >> (kBits<T> - 1)) : T{0};
  write<T>(thread, i.d, bits >= kBits<T> ? all : static_cast<T>(a >> bits));
  return Outcome::kNext;
}

// Shifts the 64 bits of b and a. Instruction::operation has these bits. Without kClamps the shift is modulo 32.
constexpr std::uint8_t kRight = 1, kClamps = 2;
Outcome funnel_shift(Thread& thread, Instruction const& i) {
  std::uint64_t const both = std::uint64_t{read<std::uint32_t>(thread, i.b)} << 32 | read<std::uint32_t>(thread, i.a);
  auto bits = read<std::uint32_t>(thread, i.c);
  bits = (i.operation & kClamps) != 0 ? std::min(bits, 32U) : bits & 31;
  write<std::uint32_t>(thread, i.d,
                       static_cast<std::uint32_t>((i.operation & kRight) != 0 ? both >> bits : both << bits >> 32));
  return Outcome::kNext;
}

// Extracts the field of c bits at bit b of a. Beyond the field, or the number, are copies of the field's highest bit if
// it is signed.
template <class T>
Outcome extract_field(Thread& thread, Instruction const& i) {
  using U = std::make_unsigned_t<T>;
  U const a = read<U>(thread, i.a);
  std::uint32_t const at = read<std::uint32_t>(thread, i.b) & 0xFF, bits = read<std::uint32_t>(thread, i.c) & 0xFF;
  bool const sign = std::is_signed_v<T> && bits > 0 && (a >> std::min(at + bits - 1, kBits<T> - 1) & 1) != 0;
  U result = 0;
  for (std::uint32_t bit = 0; bit < kBits<T>; ++bit) {
    bool const is_set = bit < bits && at + bit < kBits<T> ? (a >> (at + bit) & 1) != 0 : sign;
    result = static_cast<U>(result | U{is_set} << bit);
  }
  write<U>(thread, i.d, result);
  return Outcome::kNext;
}
// Inserts the lowest e bits of a into b, at bit c.
template <class T>
Outcome insert_field(Thread& thread, Instruction const& i) {
  T const a = read<T>(thread, i.a);
  T result = read<T>(thread, i.b);
  std::uint32_t const at = read<std::uint32_t>(thread, i.c) & 0xFF, bits = read<std::uint32_t>(thread, i.e) & 0xFF;
  for (std::uint32_t bit = 0; bit < bits && at + bit < kBits<T>; ++bit) {
    T const one = static_cast<T>(T{1} << (at + bit));
    result = static_cast<T>((a >> bit & 1) != 0 ? result | one : result & ~one);
  }
  write<T>(thread, i.d, result);
  return Outcome::kNext;
}
// Finds the highest bit that differs from the sign. Operation 1: as the shift that moves it to the highest place.
template <class T>
Outcome find_highest(Thread& thread, Instruction const& i) {
  using U = std::make_unsigned_t<T>;
  T const a = read<T>(thread, i.a);
  U const bits = static_cast<U>(std::is_signed_v<T> && a < 0 ? ~a : a);
  std::uint32_t result = ~0U;
  if (bits != 0) {
    result = kBits<T> - 1 - static_cast<std::uint32_t>(std::countl_zero(bits));
    if (i.operation != 0) result = kBits<T> - 1 - result;
  }
  write<std::uint32_t>(thread, i.d, result);
  return Outcome::kNext;
}
// A mask of b bits from bit a. Operation 1: both modulo 32.
Outcome make_mask(Thread& thread, Instruction const& i) {
  auto at = read<std::uint32_t>(thread, i.a), bits = read<std::uint32_t>(thread, i.b);
  at = i.operation != 0 ? at & 31 : std::min(at, 32U);
  bits = i.operation != 0 ? bits & 31 : std::min(bits, 32U);
  write<std::uint32_t>(thread, i.d, static_cast<std::uint32_t>(((std::uint64_t{1} << bits) - 1) << at));
  return Outcome::kNext;
}
template <class T>
Outcome count_leading_zeros(Thread& thread, Instruction const& i) {
  write<std::uint32_t>(thread, i.d, static_cast<std::uint32_t>(std::countl_zero(read<T>(thread, i.a))));
  return Outcome::kNext;
}
template <class T>
Outcome count_ones(Thread& thread, Instruction const& i) {
  write<std::uint32_t>(thread, i.d, static_cast<std::uint32_t>(std::popcount(read<T>(thread, i.a))));
  return Outcome::kNext;
}

// Picks four of the eight bytes of b and a. Operation 0: each by four bits of c, of which the highest copies the sign;
// otherwise a fixed pattern by two bits of c.
using Pattern = std::array<std::array<std::uint8_t, 4>, 4>;
constexpr std::array<Pattern, 7> kPatterns{{
    {},
    {{{0, 1, 2, 3}, {1, 2, 3, 4}, {2, 3, 4, 5}, {3, 4, 5, 6}}},  // f4e
    {{{0, 7, 6, 5}, {1, 0, 7, 6}, {2, 1, 0, 7}, {3, 2, 1, 0}}},  // b4e
    {{{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}},  // rc8
    {{{0, 1, 2, 3}, {1, 1, 2, 3}, {2, 2, 2, 3}, {3, 3, 3, 3}}},  // ecl
    {{{0, 0, 0, 0}, {0, 1, 1, 1}, {0, 1, 2, 2}, {0, 1, 2, 3}}},  // ecr
    {{{0, 1, 0, 1}, {2, 3, 2, 3}, {0, 1, 0, 1}, {2, 3, 2, 3}}},  // rc16
}};
Outcome permute_bytes(Thread& thread, Instruction const& i) {
  std::uint64_t const bytes = std::uint64_t{read<std::uint32_t>(thread, i.b)} << 32 | read<std::uint32_t>(thread, i.a);
  auto const selector = read<std::uint32_t>(thread, i.c);
  std::uint32_t result = 0;
  for (std::uint32_t k = 0; k < 4; ++k) {
    std::uint32_t const four = i.operation == 0 ? selector >> (4 * k) & 15 : kPatterns[i.operation][selector & 3][k];
    auto byte = static_cast<std::uint8_t>(bytes >> (8 * (four & 7)));
    if ((four & 8) != 0) byte = (byte & 0x80) != 0 ? 0xFF : 0;
    result |= std::uint32_t{byte} << (8 * k);
  }
  write<std::uint32_t>(thread, i.d, result);
  return Outcome::kNext;
}

// Any function of three bits: bit 4 a + 2 b + c of the table in e is the result.
Outcome logic_of_three(Thread& thread, Instruction const& i) {
  auto const a = read<std::uint32_t>(thread, i.a), b = read<std::uint32_t>(thread, i.b);
  auto const c = read<std::uint32_t>(thread, i.c), table = read<std::uint32_t>(thread, i.e);
  std::uint32_t result = 0;
  for (std::uint32_t entry = 0; entry < 8; ++entry) {
    if ((table >> entry & 1) == 0) continue;
    result |= ((entry & 4) != 0 ? a : ~a) & ((entry & 2) != 0 ? b : ~b) & ((entry & 1) != 0 ? c : ~c);
  }
  write<std::uint32_t>(thread, i.d, result);
  return Outcome::kNext;
}

// Predicates are 0 or 1, so logic on them is that of integers.
Type width_of_predicate(Type type) { return type == Type::kPredicate ? Type::kB16 : type; }

Execute select_and(Statement const& s, Instruction&) {
  return by_width(width_of_predicate(s.type()), []<class T>() -> Execute { return binary<T, conjunction<T>>; });
}
Execute select_or(Statement const& s, Instruction&) {
  return by_width(width_of_predicate(s.type()), []<class T>() -> Execute { return binary<T, disjunction<T>>; });
}
Execute select_xor(Statement const& s, Instruction&) {
  return by_width(width_of_predicate(s.type()), []<class T>() -> Execute { return binary<T, exclusive_or<T>>; });
}
Execute select_not(Statement const& s, Instruction&) {
  if (s.type() == Type::kPredicate) return negate_predicate;
  return by_width(s.type(), []<class T>() -> Execute { return unary<T, complement<T>>; });
}
Execute select_is_zero(Statement const& s, Instruction&) {
  return by_width(s.type(), []<class T>() -> Execute { return unary<T, is_zero<T>>; });
}
Execute select_reverse(Statement const& s, Instruction&) {
  return by_width(s.type(), []<class T>() -> Execute { return unary<T, reversed<T>>; });
}
Execute select_shift_left(Statement const& s, Instruction&) {
  return by_width(s.type(), []<class T>() -> Execute { return shift_left<T>; });
}
Execute select_shift_right(Statement const& s, Instruction&) {
  return by_integer(s.type(), []<class T>() -> Execute { return shift_right<T>; });
}
Execute select_funnel_shift(Statement const& s, Instruction& i) {
  i.operation = static_cast<std::uint8_t>((s.has("r") ? kRight : 0) | (s.has("clamp") ? kClamps : 0));
  return funnel_shift;
}
Execute select_extract_field(Statement const& s, Instruction&) {
  return by_integer(s.type(), []<class T>() -> Execute { return extract_field<T>; });
}
Execute select_insert_field(Statement const& s, Instruction&) {
  return by_width(s.type(), []<class T>() -> Execute { return insert_field<T>; });
}
Execute select_find_highest(Statement const& s, Instruction& i) {
  i.operation = s.has("shiftamt") ? 1 : 0;
  return by_integer(s.type(), []<class T>() -> Execute { return find_highest<T>; });
}
Execute select_mask(Statement const& s, Instruction& i) {
  i.operation = s.has("wrap") ? 1 : 0;
  return make_mask;
}
Execute select_count_zeros(Statement const& s, Instruction&) {
  return by_width(s.type(), []<class T>() -> Execute { return count_leading_zeros<T>; });
}
Execute select_count_ones(Statement const& s, Instruction&) {
  return by_width(s.type(), []<class T>() -> Execute { return count_ones<T>; });
}
Execute select_permute(Statement const& s, Instruction& i) {
  constexpr std::array<char const*, 6> kNames{"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
  for (std::size_t k = 0; k < kNames.size(); ++k) {
    if (s.has(kNames[k])) i.operation = static_cast<std::uint8_t>(k + 1);
  }
  return permute_bytes;
}
Execute select_logic_of_three(Statement const& s, Instruction&) {
  return s.has("and") || s.has("or") ? nullptr : logic_of_three;
}

}  // namespace

Rules const& bit_rules() {
  static Rules const rules{{"and", select_and},
                           {"or", select_or},
                           {"xor", select_xor},
                           {"not", select_not},
                           {"cnot", select_is_zero},
                           {"shl", select_shift_left},
                           {"shr", select_shift_right},
                           {"shf", select_funnel_shift},
                           {"bfe", select_extract_field},
                           {"bfi", select_insert_field},
                           {"bfind", select_find_highest},
                           {"bmsk", select_mask},
                           {"brev", select_reverse},
                           {"clz", select_count_zeros},
                           {"popc", select_count_ones},
                           {"prmt", select_permute},
                           {"lop3", select_logic_of_three}};
  return rules;
}

}  // namespace gpups::emulator
