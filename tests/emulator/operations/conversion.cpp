// SPDX-License-Identifier: Apache-2.0
// Moves, and conversions between types of numbers. Half precision uses the instructions F16C of the host.
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/emulator/machine/thread.hpp"
#include "tests/emulator/operations/dispatch.hpp"
#include "tests/emulator/operations/rules.hpp"

namespace gpups::emulator {
namespace {

__extension__ typedef __int128 Int128;

// Instruction::rounding. The integer roundings also apply to floats that become integral floats.
enum class Rounding : std::uint8_t { kNone, kNearest, kToZero, kDown, kUp };
constexpr std::uint8_t kToIntegral = 8;  // added to one of the above

Rounding rounding_of(Instruction const& i) { return static_cast<Rounding>(i.rounding & (kToIntegral - 1)); }
bool is_to_integral(Instruction const& i) { return i.rounding >= kToIntegral; }

bool is_floating(Type type) { return is_float(type) || type == Type::kF16 || type == Type::kBF16; }

// -- narrow floats --

std::uint16_t to_half(float value, Rounding rounding) {
  constexpr std::uint16_t kNan = 0x7FFF;
  switch (rounding) {
    case Rounding::kToZero:
      return _cvtss_sh(value, _MM_FROUND_TO_ZERO);
    case Rounding::kDown:
      return _cvtss_sh(value, _MM_FROUND_TO_NEG_INF);
    case Rounding::kUp:
      return _cvtss_sh(value, _MM_FROUND_TO_POS_INF);
    default:
      return std::isnan(value) ? kNan : _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT);
  }
}
std::uint16_t to_bfloat(float value, Rounding rounding) {
  constexpr std::uint16_t kNan = 0x7FFF;
  if (std::isnan(value)) return kNan;
  auto const bits = std::bit_cast<std::uint32_t>(value);
  if (rounding == Rounding::kToZero) return static_cast<std::uint16_t>(bits >> 16);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
float from_bfloat(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

// -- rounding --

double to_integral(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::kNearest:
      return std::nearbyint(value);
    case Rounding::kToZero:
      return std::trunc(value);
    case Rounding::kDown:
      return std::floor(value);
    case Rounding::kUp:
      return std::ceil(value);
    default:
      return value;
  }
}

// Returns `nearest`, which was rounded to nearest from `exact`, rounded in the direction instead.
template <class T>
T directed(T nearest, long double exact, Rounding rounding) {
  T const infinity = std::numeric_limits<T>::infinity();
  auto const rounded = static_cast<long double>(nearest);
  if (rounding == Rounding::kToZero && std::abs(rounded) > std::abs(exact)) return std::nextafter(nearest, T{0});
  if (rounding == Rounding::kDown && rounded > exact) return std::nextafter(nearest, -infinity);
  if (rounding == Rounding::kUp && rounded < exact) return std::nextafter(nearest, infinity);
  return nearest;
}

// Floats outside of the range of an integer type become its limit. NaN becomes 0, or the highest bit of 64.
template <class T>
std::uint64_t to_integer(double value) {
  if (std::isnan(value)) return sizeof(T) == 8 ? std::uint64_t{1} << 63 : 0;
  constexpr T kMin = std::numeric_limits<T>::min(), kMax = std::numeric_limits<T>::max();
  if (value <= static_cast<double>(kMin)) return static_cast<std::uint64_t>(static_cast<std::int64_t>(kMin));
  if (value >= static_cast<double>(kMax)) return static_cast<std::uint64_t>(kMax);
  if constexpr (std::is_same_v<T, std::uint64_t>) return static_cast<std::uint64_t>(value);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}
template <class T>
std::uint64_t saturated(Int128 value) {
  return static_cast<std::uint64_t>(std::clamp(value, static_cast<Int128>(std::numeric_limits<T>::min()),
                                               static_cast<Int128>(std::numeric_limits<T>::max())));
}
// Keeps the lowest bits; signs are extended to the whole register.
template <class T>
std::uint64_t truncated(Int128 value) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<T>(value)));
}
template <>
std::uint64_t truncated<std::uint64_t>(Int128 value) {
  return static_cast<std::uint64_t>(value);
}

// Calls f with the C++ type of an integer type.
template <class F>
std::uint64_t with_integer(Type type, F f) {
  switch (type) {
    case Type::kU8:
    case Type::kB8:
      return f.template operator()<std::uint8_t>();
    case Type::kS8:
      return f.template operator()<std::int8_t>();
    case Type::kU16:
    case Type::kB16:
      return f.template operator()<std::uint16_t>();
    case Type::kS16:
      return f.template operator()<std::int16_t>();
    case Type::kU32:
    case Type::kB32:
      return f.template operator()<std::uint32_t>();
    case Type::kS32:
      return f.template operator()<std::int32_t>();
    case Type::kS64:
      return f.template operator()<std::int64_t>();
    default:
      return f.template operator()<std::uint64_t>();
  }
}

// -- cvt --

Int128 integer_source(Type type, Register value) {
  Int128 result = 0;
  with_integer(type, [&]<class T>() {
    result = static_cast<Int128>(static_cast<T>(value));
    return std::uint64_t{0};
  });
  return result;
}
double float_source(Type type, Register value) {
  switch (type) {
    case Type::kF16:
      return static_cast<double>(_cvtsh_ss(static_cast<std::uint16_t>(value)));
    case Type::kBF16:
      return static_cast<double>(from_bfloat(static_cast<std::uint16_t>(value)));
    case Type::kF32:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(value)));
    default:
      return std::bit_cast<double>(value);
  }
}

// A value as both types of floats.
struct Floats {
  float narrow;
  double wide;
};
Floats floats_of_float(Instruction const& i, double value) {
  if (is_to_integral(i)) value = to_integral(value, rounding_of(i));
  auto narrow = static_cast<float>(value);
  bool const narrows = i.from_type == Type::kF64 && i.type == Type::kF32 && !is_to_integral(i);
  if (narrows) narrow = directed(narrow, value, rounding_of(i));
  return {narrow, value};
}
Floats floats_of_integer(Instruction const& i, Int128 value) {
  auto const exact = static_cast<long double>(value);
  Floats result{static_cast<float>(exact), static_cast<double>(exact)};
  return {directed(result.narrow, exact, rounding_of(i)), directed(result.wide, exact, rounding_of(i))};
}

template <class T>
T limited(T value) {
  return value > 0 ? std::min(value, T{1}) : T{0};  // NaN becomes 0
}
Register float_result(Instruction const& i, Floats value) {
  if (i.saturates) value = {limited(value.narrow), limited(value.wide)};
  switch (i.type) {
    case Type::kF32:
      return std::isnan(value.narrow) ? 0x7FFFFFFF : std::bit_cast<std::uint32_t>(value.narrow);
    case Type::kF64:
      return std::bit_cast<std::uint64_t>(value.wide);
    case Type::kF16:
      return to_half(value.narrow, rounding_of(i));
    default:
      return to_bfloat(value.narrow, rounding_of(i));
  }
}

Outcome convert(Thread& thread, Instruction const& i) {
  Register const source = thread.registers[i.a];
  Register& result = thread.registers[i.d];
  if (is_floating(i.from_type)) {
    double const value = float_source(i.from_type, source);
    if (is_floating(i.type)) {
      result = float_result(i, floats_of_float(i, value));
    } else {
      double const integral = to_integral(value, is_to_integral(i) ? rounding_of(i) : Rounding::kToZero);
      result = with_integer(i.type, [&]<class T>() { return to_integer<T>(integral); });
    }
    return Outcome::kNext;
  }
  Int128 const value = integer_source(i.from_type, source);
  if (is_floating(i.type)) {
    result = float_result(i, floats_of_integer(i, value));
  } else {
    result = with_integer(i.type, [&]<class T>() { return i.saturates ? saturated<T>(value) : truncated<T>(value); });
  }
  return Outcome::kNext;
}

// The conversions between integers of 32 and 64 bits, which are the most.
Outcome extend_unsigned(Thread& thread, Instruction const& i) {
  thread.registers[i.d] = static_cast<std::uint32_t>(thread.registers[i.a]);
  return Outcome::kNext;
}
Outcome extend_signed(Thread& thread, Instruction const& i) {
  thread.registers[i.d] = static_cast<std::uint64_t>(std::int64_t{read<std::int32_t>(thread, i.a)});
  return Outcome::kNext;
}

// Two floats into the halves of a word: a is the upper one.
Outcome convert_pair(Thread& thread, Instruction const& i) {
  auto const narrow = [&](RegisterId id) {
    float const value = read<float>(thread, id);
    return i.type == Type::kF16x2 ? to_half(value, rounding_of(i)) : to_bfloat(value, rounding_of(i));
  };
  write<std::uint32_t>(thread, i.d, std::uint32_t{narrow(i.a)} << 16 | narrow(i.b));
  return Outcome::kNext;
}

// -- mov and cvta --

template <class T>
Outcome move(Thread& thread, Instruction const& i) {
  write<T>(thread, i.d, read<T>(thread, i.a));
  return Outcome::kNext;
}
Outcome move_predicate(Thread& thread, Instruction const& i) {
  thread.registers[i.d] = thread.registers[i.a] & 1;
  return Outcome::kNext;
}
// Between a register and a vector of parts, each of Instruction::operation bits.
std::uint64_t mask_of(Instruction const& i) {
  return i.operation == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << i.operation) - 1;
}
Outcome pack(Thread& thread, Instruction const& i) {
  std::uint64_t result = 0;
  for (std::uint8_t k = 0; k < i.elements; ++k) {
    result |= (thread.registers[i.vector[k]] & mask_of(i)) << (i.operation * k);
  }
  thread.registers[i.d] = result;
  return Outcome::kNext;
}
Outcome unpack(Thread& thread, Instruction const& i) {
  std::uint64_t const source = thread.registers[i.a];
  for (std::uint8_t k = 0; k < i.elements; ++k) {
    write<std::uint64_t>(thread, i.vector[k], source >> (i.operation * k) & mask_of(i));
  }
  return Outcome::kNext;
}

Outcome to_generic_shared(Thread& thread, Instruction const& i) {
  thread.registers[i.d] = read<std::uint32_t>(thread, i.a) + kSharedWindow;
  return Outcome::kNext;
}
Outcome from_generic_shared(Thread& thread, Instruction const& i) {
  thread.registers[i.d] = thread.registers[i.a] - kSharedWindow;
  return Outcome::kNext;
}

// -- selection --

Execute select_move(Statement const& s, Instruction& i) {
  if (i.elements > 1) {
    i.operation = static_cast<std::uint8_t>(8 * bytes_of(s.type()) / i.elements);
    return i.d == kNoRegister ? unpack : pack;
  }
  if (s.type() == Type::kPredicate) return move_predicate;
  return by_width(s.type(), []<class T>() -> Execute { return move<T>; });
}

std::uint8_t rounding_in(Statement const& s) {
  constexpr char const *kDirections[] = {"rn", "rz", "rm", "rp"}, *kIntegral[] = {"rni", "rzi", "rmi", "rpi"};
  for (std::uint8_t k = 0; k < 4; ++k) {
    if (s.has(kDirections[k])) return static_cast<std::uint8_t>(k + 1);
    if (s.has(kIntegral[k])) return static_cast<std::uint8_t>(k + 1 + kToIntegral);
  }
  return 0;
}
Execute select_convert(Statement const& s, Instruction& i) {
  if (s.has("relu")) return nullptr;
  i.from_type = s.type();
  i.type = s.type_before();
  i.rounding = rounding_in(s);
  i.saturates = s.has("sat");
  if (i.type == Type::kF16x2 || i.type == Type::kBF16x2) return convert_pair;
  bool const is_plain = !i.saturates && !is_floating(i.type) && !is_floating(i.from_type);
  if (is_plain && bytes_of(i.type) == 8 && i.from_type == Type::kU32) return extend_unsigned;
  if (is_plain && bytes_of(i.type) == 8 && i.from_type == Type::kS32) return extend_signed;
  return convert;
}
Execute select_convert_address(Statement const& s, Instruction&) {
  if (!s.has("shared")) return move<std::uint64_t>;
  return s.has("to") ? from_generic_shared : to_generic_shared;
}

}  // namespace

Rules const& conversion_rules() {
  static Rules const rules{{"mov", select_move}, {"cvt", select_convert}, {"cvta", select_convert_address}};
  return rules;
}

}  // namespace gpups::emulator
