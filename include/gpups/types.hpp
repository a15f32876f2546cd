// SPDX-License-Identifier: Apache-2.0
// Distinct types for keys, ranks, clocks and tables. The compiler rejects one in place of another.
//
//   Key const key{42};
//   Clock const next = store.clock() + 1;
//   std::int64_t const step = number(next);
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

#include "gpups/compiler.hpp"

namespace gpups {

// The 64-bit id of a row in a table, such as `Key{42}`. Every value is valid and need not be registered.
enum class Key : std::uint64_t {};

// A rank of a group: a process or a thread, numbered from 0.
enum class Rank : std::uint32_t {};

// A training step, numbered from 0.
enum class Clock : std::int64_t {};

// A table of a store. Store::add_table() numbers tables from 0, in the order of its calls.
enum class TableId : std::uint32_t {};

// Returns the value as an integer, for indices, arithmetic and printing.
constexpr std::uint64_t number(Key key) { return static_cast<std::uint64_t>(key); }
constexpr std::uint32_t number(Rank rank) { return static_cast<std::uint32_t>(rank); }
constexpr std::int64_t number(Clock clock) { return static_cast<std::int64_t>(clock); }
constexpr std::uint32_t number(TableId table) { return static_cast<std::uint32_t>(table); }

// A clock plus or minus a number of steps, and the number of steps between two clocks.
constexpr Clock operator+(Clock clock, std::int64_t steps) { return Clock{number(clock) + steps}; }
constexpr Clock operator-(Clock clock, std::int64_t steps) { return Clock{number(clock) - steps}; }
constexpr std::int64_t operator-(Clock a, Clock b) { return number(a) - number(b); }

}  // namespace gpups
