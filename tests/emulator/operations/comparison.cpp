// SPDX-License-Identifier: Apache-2.0
// Comparisons, and selections by their results.
#include <cmath>
#include <cstdint>
#include <map>
#include <string_view>

#include "tests/emulator/machine/thread.hpp"
#include "tests/emulator/operations/dispatch.hpp"
#include "tests/emulator/operations/rules.hpp"

namespace gpups::emulator {
namespace {

// The unordered comparisons, with a "u", are true if an operand is NaN.
enum class Comparison : std::uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kEqualU,
  kNotEqualU,
  kLessU,
  kLessEqualU,
  kGreaterU,
  kGreaterEqualU,
  kNumbers,
  kNan
};

// How the result is combined with a predicate.
enum class Combination : std::uint8_t { kNone, kAnd, kOr, kXor };

template <class T>
bool compare(T a, T b, Comparison comparison) {
  bool const is_unordered = a != a || b != b;
  switch (comparison) {
    case Comparison::kEqual:
      return a == b;
    case Comparison::kNotEqual:
      return a != b && !is_unordered;
    case Comparison::kLess:
      return a < b;
    case Comparison::kLessEqual:
      return a <= b;
    case Comparison::kGreater:
      return a > b;
    case Comparison::kGreaterEqual:
      return a >= b;
    case Comparison::kEqualU:
      return a == b || is_unordered;
    case Comparison::kNotEqualU:
      return a != b;
    case Comparison::kLessU:
      return a < b || is_unordered;
    case Comparison::kLessEqualU:
      return a <= b || is_unordered;
    case Comparison::kGreaterU:
      return a > b || is_unordered;
    case Comparison::kGreaterEqualU:
      return a >= b || is_unordered;
    case Comparison::kNumbers:
      return !is_unordered;
    default:
      return is_unordered;
  }
}

bool combined(Thread const& thread, Instruction const& i, bool result) {
  bool const other = i.c != kNoRegister && (thread.registers[i.c] & 1) != 0;
  switch (static_cast<Combination>(i.rounding)) {
    case Combination::kAnd:
      return result && other;
    case Combination::kOr:
      return result || other;
    case Combination::kXor:
      return result != other;
    default:
      return result;
  }
}

template <class T>
bool compared(Thread const& thread, Instruction const& i) {
  return compare<T>(read<T>(thread, i.a), read<T>(thread, i.b), static_cast<Comparison>(i.operation));
}
// d is the result, and d2 that of the opposite comparison.
template <class T>
Outcome set_predicate(Thread& thread, Instruction const& i) {
  bool const result = compared<T>(thread, i);
  bool const other = combined(thread, i, !result);
  write<bool>(thread, i.d, combined(thread, i, result));
  write<bool>(thread, i.d2, other);
  return Outcome::kNext;
}
// The result is 1.0, or a number with all bits set.
template <class T>
Outcome set_number(Thread& thread, Instruction const& i) {
  std::uint32_t const one = i.from_type == Type::kF32 ? 0x3F800000 : ~0U;
  write<std::uint32_t>(thread, i.d, combined(thread, i, compared<T>(thread, i)) ? one : 0);
  return Outcome::kNext;
}
Outcome select_by_predicate(Thread& thread, Instruction const& i) {
  thread.registers[i.d] = thread.registers[(thread.registers[i.c] & 1) != 0 ? i.a : i.b];
  return Outcome::kNext;
}
Outcome select_by_sign(Thread& thread, Instruction const& i) {
  bool const is_positive = i.type == Type::kF32 ? read<float>(thread, i.c) >= 0 : read<std::int32_t>(thread, i.c) >= 0;
  thread.registers[i.d] = thread.registers[is_positive ? i.a : i.b];
  return Outcome::kNext;
}

// The properties of a float, in the order of the names in select_property().
template <class T>
Outcome test_property(Thread& thread, Instruction const& i) {
  T const a = read<T>(thread, i.a);
  bool const results[] = {std::isfinite(a), std::isinf(a),    !std::isnan(a),
                          std::isnan(a),    std::isnormal(a), std::fpclassify(a) == FP_SUBNORMAL};
  write<bool>(thread, i.d, results[i.operation]);
  return Outcome::kNext;
}

bool set_comparison(Statement const& s, Instruction& i) {
  static std::map<std::string_view, Comparison> const names{
      {"eq", Comparison::kEqual},          {"ne", Comparison::kNotEqual},    {"lt", Comparison::kLess},
      {"le", Comparison::kLessEqual},      {"gt", Comparison::kGreater},     {"ge", Comparison::kGreaterEqual},
      {"lo", Comparison::kLess},           {"ls", Comparison::kLessEqual},   {"hi", Comparison::kGreater},
      {"hs", Comparison::kGreaterEqual},   {"equ", Comparison::kEqualU},     {"neu", Comparison::kNotEqualU},
      {"ltu", Comparison::kLessU},         {"leu", Comparison::kLessEqualU}, {"gtu", Comparison::kGreaterU},
      {"geu", Comparison::kGreaterEqualU}, {"num", Comparison::kNumbers},    {"nan", Comparison::kNan}};
  auto const found = s.modifiers.empty() ? names.end() : names.find(s.modifiers.front());
  if (found == names.end()) return false;
  i.operation = static_cast<std::uint8_t>(found->second);
  Combination const combination = s.has("and")   ? Combination::kAnd
                                  : s.has("or")  ? Combination::kOr
                                  : s.has("xor") ? Combination::kXor
                                                 : Combination::kNone;
  i.rounding = static_cast<std::uint8_t>(combination);
  return true;
}

Execute select_set_predicate(Statement const& s, Instruction& i) {
  if (!set_comparison(s, i)) return nullptr;
  if (is_float(s.type())) return by_float(s.type(), []<class T>() -> Execute { return set_predicate<T>; });
  return by_integer(s.type(), []<class T>() -> Execute { return set_predicate<T>; });
}
Execute select_set_number(Statement const& s, Instruction& i) {
  i.from_type = s.type_before();
  if (!set_comparison(s, i)) return nullptr;
  if (is_float(s.type())) return by_float(s.type(), []<class T>() -> Execute { return set_number<T>; });
  return by_integer(s.type(), []<class T>() -> Execute { return set_number<T>; });
}
Execute select_selection(Statement const&, Instruction&) { return select_by_predicate; }
Execute select_selection_by_sign(Statement const&, Instruction&) { return select_by_sign; }
Execute select_property(Statement const& s, Instruction& i) {
  constexpr char const* kNames[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  for (std::uint8_t k = 0; k < std::size(kNames); ++k) {
    if (s.has(kNames[k])) i.operation = k;
  }
  return by_float(s.type(), []<class T>() -> Execute { return test_property<T>; });
}

}  // namespace

Outcome negate_predicate(Thread& thread, Instruction const& i) {
  write<bool>(thread, i.d, (thread.registers[i.a] & 1) == 0);
  return Outcome::kNext;
}

Rules const& comparison_rules() {
  static Rules const rules{{"setp", select_set_predicate},
                           {"set", select_set_number},
                           {"selp", select_selection},
                           {"slct", select_selection_by_sign},
                           {"testp", select_property}};
  return rules;
}

}  // namespace gpups::emulator
