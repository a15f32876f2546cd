// SPDX-License-Identifier: Apache-2.0
// Selects the instance of a template by the type of an instruction. f is a generic lambda without arguments:
// [] <class T>() -> Execute { return binary<T, Add>; }.
#pragma once

#include <cstdint>

#include "tests/emulator/ptx/program.hpp"
#include "tests/emulator/ptx/text.hpp"

namespace gpups::emulator {

// By the width alone: 16, 32 or 64 bits, as unsigned integers.
template <class F>
Execute by_width(Type type, F f) {
  switch (bytes_of(type)) {
    case 2:
      return f.template operator()<std::uint16_t>();
    case 4:
      return f.template operator()<std::uint32_t>();
    case 8:
      return f.template operator()<std::uint64_t>();
    default:
      return nullptr;
  }
}

// By width and sign.
template <class F>
Execute by_integer(Type type, F f) {
  switch (type) {
    case Type::kS16:
      return f.template operator()<std::int16_t>();
    case Type::kS32:
      return f.template operator()<std::int32_t>();
    case Type::kS64:
      return f.template operator()<std::int64_t>();
    default:
      return is_float(type) ? nullptr : by_width(type, f);
  }
}

template <class F>
Execute by_float(Type type, F f) {
  if (type == Type::kF32) return f.template operator()<float>();
  return type == Type::kF64 ? f.template operator()<double>() : nullptr;
}

}  // namespace gpups::emulator
