// SPDX-License-Identifier: Apache-2.0
// Arithmetic of integers and floats.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tests/emulator/machine/thread.hpp"
#include "tests/emulator/operations/dispatch.hpp"
#include "tests/emulator/operations/rules.hpp"

namespace gpups::emulator {
namespace {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;

// The integer type of twice the width.
template <class T>
struct Twice;
template <>
struct Twice<std::uint16_t> {
  using type = std::uint32_t;
};
template <>
struct Twice<std::int16_t> {
  using type = std::int32_t;
};
template <>
struct Twice<std::uint32_t> {
  using type = std::uint64_t;
};
template <>
struct Twice<std::int32_t> {
  using type = std::int64_t;
};
template <>
struct Twice<std::uint64_t> {
  using type = UInt128;
};
template <>
struct Twice<std::int64_t> {
  using type = Int128;
};
template <class T>
using Wide = typename Twice<T>::type;

// -- integers; modulo 2^bits, as the flag -fwrapv makes signed ones --

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
T add(T a, T b) {
  return static_cast<T>(a + b);
}
template <class T>
T subtract(T a, T b) {
  return static_cast<T>(a - b);
}
template <class T>
T multiply_low(T a, T b) {
  return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b));
}
template <class T>
T multiply_high(T a, T b) {
  return static_cast<T>((static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)) >> (8 * sizeof(T)));
}
// A GPU does not trap: a quotient by zero has all bits set, and a remainder by zero is the dividend.
template <class T>
T divide(T a, T b) {
  if (b == 0) return static_cast<T>(~T{0});
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return static_cast<T>(-a);
  }
  return static_cast<T>(a / b);
}
template <class T>
T remainder_of(T a, T b) {
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return static_cast<T>(a % b);
}
template <class T>
T smaller(T a, T b) {
  return std::min(a, b);
}
template <class T>
T larger(T a, T b) {
  return std::max(a, b);
}
template <class T>
T negated(T a) {
  return static_cast<T>(-a);
}
template <class T>
T magnitude(T a) {
  return static_cast<T>(a < 0 ? -a : a);
}

template <class T, T (*product)(T, T)>
Outcome multiply_add(Thread& thread, Instruction const& i) {
  write<T>(thread, i.d, static_cast<T>(product(read<T>(thread, i.a), read<T>(thread, i.b)) + read<T>(thread, i.c)));
  return Outcome::kNext;
}
template <class T>
Outcome multiply_wide(Thread& thread, Instruction const& i) {
  write<Wide<T>>(thread, i.d, static_cast<Wide<T>>(read<T>(thread, i.a)) * static_cast<Wide<T>>(read<T>(thread, i.b)));
  return Outcome::kNext;
}
template <class T>
Outcome multiply_add_wide(Thread& thread, Instruction const& i) {
  Wide<T> const product = static_cast<Wide<T>>(read<T>(thread, i.a)) * static_cast<Wide<T>>(read<T>(thread, i.b));
  write<Wide<T>>(thread, i.d, static_cast<Wide<T>>(product + read<Wide<T>>(thread, i.c)));
  return Outcome::kNext;
}
template <class T>
Outcome absolute_difference(Thread& thread, Instruction const& i) {
  T const a = read<T>(thread, i.a), b = read<T>(thread, i.b);
  write<T>(thread, i.d, static_cast<T>(read<T>(thread, i.c) + (a > b ? a - b : b - a)));
  return Outcome::kNext;
}

// Additions and subtractions with carry. Instruction::rounding: bit 0 reads the carry, bit 1 writes it.
constexpr std::uint8_t kReadsCarry = 1, kWritesCarry = 2;
template <class T, bool (*overflows)(T, T, T*)>
void with_carry(Thread& thread, Instruction const& i, T a, T b) {
  T partial{}, result{};
  bool carry = overflows(a, b, &partial);
  carry |= overflows(partial, static_cast<T>((i.rounding & kReadsCarry) != 0 ? thread.carry : 0), &result);
  write<T>(thread, i.d, result);
  if ((i.rounding & kWritesCarry) != 0) thread.carry = carry ? 1 : 0;
}
template <class T>
bool add_overflows(T a, T b, T* sum) {
  return __builtin_add_overflow(a, b, sum);
}
template <class T>
bool subtract_overflows(T a, T b, T* difference) {
  return __builtin_sub_overflow(a, b, difference);
}
template <class T, bool (*overflows)(T, T, T*)>
Outcome add_with_carry(Thread& thread, Instruction const& i) {
  with_carry<T, overflows>(thread, i, read<T>(thread, i.a), read<T>(thread, i.b));
  return Outcome::kNext;
}
template <class T, T (*product)(T, T)>
Outcome multiply_add_with_carry(Thread& thread, Instruction const& i) {
  with_carry<T, add_overflows<T>>(thread, i, product(read<T>(thread, i.a), read<T>(thread, i.b)), read<T>(thread, i.c));
  return Outcome::kNext;
}

// -- floats --

// Writes a result. An NVIDIA GPU makes one pattern of bits for every NaN of 32 bits.
template <class T>
void write_float(Thread& thread, Instruction const& i, T value) {
  if constexpr (std::is_same_v<T, float>) {
    if (std::isnan(value)) value = std::bit_cast<float>(0x7FFFFFFFU);
  }
  if (i.saturates) value = value > 0 ? std::min(value, T{1}) : T{0};  // NaN becomes 0
  write<T>(thread, i.d, value);
}
template <class T, T (*f)(T, T)>
Outcome float_binary(Thread& thread, Instruction const& i) {
  write_float<T>(thread, i, f(read<T>(thread, i.a), read<T>(thread, i.b)));
  return Outcome::kNext;
}
template <class T, double (*f)(double)>
Outcome float_unary(Thread& thread, Instruction const& i) {
  write_float<T>(thread, i, static_cast<T>(f(static_cast<double>(read<T>(thread, i.a)))));
  return Outcome::kNext;
}
template <class T>
T float_product(T a, T b) {
  return a * b;
}
template <class T>
T float_quotient(T a, T b) {
  return a / b;
}
template <class T>
Outcome fused_multiply_add(Thread& thread, Instruction const& i) {
  write_float<T>(thread, i, std::fma(read<T>(thread, i.a), read<T>(thread, i.b), read<T>(thread, i.c)));
  return Outcome::kNext;
}
template <class T>
Outcome square_root(Thread& thread, Instruction const& i) {
  write_float<T>(thread, i, std::sqrt(read<T>(thread, i.a)));
  return Outcome::kNext;
}
template <class T>
Outcome reciprocal(Thread& thread, Instruction const& i) {
  write_float<T>(thread, i, T{1} / read<T>(thread, i.a));
  return Outcome::kNext;
}
double inverse_root(double x) { return 1 / std::sqrt(x); }
double sine(double x) { return std::sin(x); }
double cosine(double x) { return std::cos(x); }
double exponential(double x) { return std::exp2(x); }
double logarithm(double x) { return std::log2(x); }
double hyperbolic_tangent(double x) { return std::tanh(x); }

// Signs change bits alone, also of NaN.
template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
template <class T>
constexpr Bits<T> kSign = Bits<T>{1} << (8 * sizeof(T) - 1);
template <class T>
Outcome float_negate(Thread& thread, Instruction const& i) {
  write<Bits<T>>(thread, i.d, read<Bits<T>>(thread, i.a) ^ kSign<T>);
  return Outcome::kNext;
}
template <class T>
Outcome float_magnitude(Thread& thread, Instruction const& i) {
  write<Bits<T>>(thread, i.d, read<Bits<T>>(thread, i.a) & ~kSign<T>);
  return Outcome::kNext;
}
// The sign is that of a.
template <class T>
Outcome copy_sign(Thread& thread, Instruction const& i) {
  write<T>(thread, i.d, std::copysign(read<T>(thread, i.b), read<T>(thread, i.a)));
  return Outcome::kNext;
}

// Minimum and maximum. Without ".NaN" (rounding 1), a NaN gives the other operand. -0 is below 0.
template <class T, bool kMaximum>
Outcome float_extreme(Thread& thread, Instruction const& i) {
  T const a = read<T>(thread, i.a), b = read<T>(thread, i.b);
  T result{};
  if (std::isnan(a) || std::isnan(b)) {
    bool const keeps_nan = i.rounding != 0;
    result = keeps_nan ? std::numeric_limits<T>::quiet_NaN() : std::isnan(a) ? b : a;
  } else if (a == b) {
    result = std::signbit(a) == kMaximum ? b : a;
  } else {
    result = (a < b) == kMaximum ? b : a;
  }
  write_float<T>(thread, i, result);
  return Outcome::kNext;
}

// -- selection --

bool uses_carry(Statement const& s) { return s.has("cc") || s.mnemonic.ends_with('c'); }
void set_carry(Statement const& s, Instruction& i) {
  bool const reads = s.mnemonic == "addc" || s.mnemonic == "subc" || s.mnemonic == "madc";
  i.rounding = static_cast<std::uint8_t>((reads ? kReadsCarry : 0) | (s.has("cc") ? kWritesCarry : 0));
}

Execute select_add(Statement const& s, Instruction& i) {
  i.saturates = s.has("sat");
  if (is_float(s.type())) return by_float(s.type(), []<class T>() -> Execute { return float_binary<T, add<T>>; });
  if (i.saturates) return nullptr;
  if (!uses_carry(s)) return by_width(s.type(), []<class T>() -> Execute { return binary<T, add<T>>; });
  set_carry(s, i);
  return by_width(s.type(), []<class T>() -> Execute { return add_with_carry<T, add_overflows<T>>; });
}
Execute select_subtract(Statement const& s, Instruction& i) {
  i.saturates = s.has("sat");
  if (is_float(s.type())) return by_float(s.type(), []<class T>() -> Execute { return float_binary<T, subtract<T>>; });
  if (i.saturates) return nullptr;
  if (!uses_carry(s)) return by_width(s.type(), []<class T>() -> Execute { return binary<T, subtract<T>>; });
  set_carry(s, i);
  return by_width(s.type(), []<class T>() -> Execute { return add_with_carry<T, subtract_overflows<T>>; });
}

template <class F>
Execute by_narrow_integer(Type type, F f) {
  return bytes_of(type) == 8 ? nullptr : by_integer(type, f);
}
template <class T>
Execute wide_product() {
  if constexpr (sizeof(T) == 8) {
    return nullptr;
  } else {
    return multiply_wide<T>;
  }
}
template <class T>
Execute wide_product_sum() {
  if constexpr (sizeof(T) == 8) {
    return nullptr;
  } else {
    return multiply_add_wide<T>;
  }
}
Execute select_multiply(Statement const& s, Instruction& i) {
  i.saturates = s.has("sat");
  if (is_float(s.type())) {
    return by_float(s.type(), []<class T>() -> Execute { return float_binary<T, float_product<T>>; });
  }
  if (s.has("wide")) return by_integer(s.type(), []<class T>() -> Execute { return wide_product<T>(); });
  if (s.has("hi")) return by_integer(s.type(), []<class T>() -> Execute { return binary<T, multiply_high<T>>; });
  return by_width(s.type(), []<class T>() -> Execute { return binary<T, multiply_low<T>>; });
}
Execute select_fused(Statement const& s, Instruction& i) {
  i.saturates = s.has("sat");
  return by_float(s.type(), []<class T>() -> Execute { return fused_multiply_add<T>; });
}
Execute select_multiply_add(Statement const& s, Instruction& i) {
  if (is_float(s.type())) return select_fused(s, i);
  if (uses_carry(s)) {
    set_carry(s, i);
    if (s.has("hi")) {
      return by_integer(s.type(), []<class T>() -> Execute { return multiply_add_with_carry<T, multiply_high<T>>; });
    }
    return by_width(s.type(), []<class T>() -> Execute { return multiply_add_with_carry<T, multiply_low<T>>; });
  }
  if (s.has("wide")) return by_integer(s.type(), []<class T>() -> Execute { return wide_product_sum<T>(); });
  if (s.has("hi")) return by_integer(s.type(), []<class T>() -> Execute { return multiply_add<T, multiply_high<T>>; });
  return by_width(s.type(), []<class T>() -> Execute { return multiply_add<T, multiply_low<T>>; });
}
Execute select_divide(Statement const& s, Instruction&) {
  if (is_float(s.type())) {
    return by_float(s.type(), []<class T>() -> Execute { return float_binary<T, float_quotient<T>>; });
  }
  return by_integer(s.type(), []<class T>() -> Execute { return binary<T, divide<T>>; });
}
Execute select_remainder(Statement const& s, Instruction&) {
  return by_integer(s.type(), []<class T>() -> Execute { return binary<T, remainder_of<T>>; });
}
Execute select_negate(Statement const& s, Instruction&) {
  if (is_float(s.type())) return by_float(s.type(), []<class T>() -> Execute { return float_negate<T>; });
  return by_width(s.type(), []<class T>() -> Execute { return unary<T, negated<T>>; });
}
Execute select_magnitude(Statement const& s, Instruction&) {
  if (is_float(s.type())) return by_float(s.type(), []<class T>() -> Execute { return float_magnitude<T>; });
  return by_integer(s.type(), []<class T>() -> Execute { return unary<T, magnitude<T>>; });
}
Execute select_minimum(Statement const& s, Instruction& i) {
  i.rounding = s.has("NaN") ? 1 : 0;
  if (is_float(s.type())) return by_float(s.type(), []<class T>() -> Execute { return float_extreme<T, false>; });
  return by_integer(s.type(), []<class T>() -> Execute { return binary<T, smaller<T>>; });
}
Execute select_maximum(Statement const& s, Instruction& i) {
  i.rounding = s.has("NaN") ? 1 : 0;
  if (is_float(s.type())) return by_float(s.type(), []<class T>() -> Execute { return float_extreme<T, true>; });
  return by_integer(s.type(), []<class T>() -> Execute { return binary<T, larger<T>>; });
}
Execute select_absolute_difference(Statement const& s, Instruction&) {
  return by_integer(s.type(), []<class T>() -> Execute { return absolute_difference<T>; });
}
template <double (*f)(double)>
Execute select_float_unary(Statement const& s, Instruction&) {
  return by_float(s.type(), []<class T>() -> Execute { return float_unary<T, f>; });
}
Execute select_root(Statement const& s, Instruction&) {
  return by_float(s.type(), []<class T>() -> Execute { return square_root<T>; });
}
Execute select_reciprocal(Statement const& s, Instruction&) {
  return by_float(s.type(), []<class T>() -> Execute { return reciprocal<T>; });
}
Execute select_copy_sign(Statement const& s, Instruction&) {
  return by_float(s.type(), []<class T>() -> Execute { return copy_sign<T>; });
}

}  // namespace

Rules const& arithmetic_rules() {
  static Rules const rules{{"add", select_add},
                           {"addc", select_add},
                           {"sub", select_subtract},
                           {"subc", select_subtract},
                           {"mul", select_multiply},
                           {"mad", select_multiply_add},
                           {"madc", select_multiply_add},
                           {"fma", select_fused},
                           {"div", select_divide},
                           {"rem", select_remainder},
                           {"neg", select_negate},
                           {"abs", select_magnitude},
                           {"min", select_minimum},
                           {"max", select_maximum},
                           {"sad", select_absolute_difference},
                           {"sqrt", select_root},
                           {"rcp", select_reciprocal},
                           {"rsqrt", select_float_unary<inverse_root>},
                           {"sin", select_float_unary<sine>},
                           {"cos", select_float_unary<cosine>},
                           {"ex2", select_float_unary<exponential>},
                           {"lg2", select_float_unary<logarithm>},
                           {"tanh", select_float_unary<hyperbolic_tangent>},
                           {"copysign", select_copy_sign}};
  return rules;
}

}  // namespace gpups::emulator
