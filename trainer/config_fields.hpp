// SPDX-License-Identifier: Apache-2.0
// The keys of a configuration as an array: where each is kept, what it may be, and when it has an effect.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trainer/config.hpp"

namespace gpups::trainer {

using FieldPointer =
    std::variant<std::string*, std::int64_t*, double*, bool*, std::vector<std::int64_t>*, std::vector<std::string>*>;

// When a key has an effect, and in which words to say that it has none.
struct Constraint {
  bool (*in)(Config const&) = [](Config const&) { return true; };
  std::string_view otherwise;
};

struct Field {
  std::string_view section, key, doc;
  FieldPointer (*pointer)(Config&) = nullptr;
  double least = std::numeric_limits<double>::lowest();  // of numbers
  double most = std::numeric_limits<double>::max();
  std::vector<std::string> choices{};  // of strings; empty: any
  bool path = false;                   // relative to where the key was given
  bool is_fixed_on_resume = false;     // for a checkpoint
  bool ordered = false;                // of lists: the order has a meaning, and what is in them may come twice
  Constraint constraint{};

  std::string name() const { return std::string(section) + "." + std::string(key); }
};

std::span<Field const> fields();

}  // namespace gpups::trainer
