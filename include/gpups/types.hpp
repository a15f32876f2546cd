// SPDX-License-Identifier: Apache-2.0
// The words of the library as types: numbers that mean different things do not mix.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace gpups {

// 64-bit id of a row in a table. Any value is allowed and none is announced beforehand: `Key{42}`.
enum class Key : std::uint64_t {};

// Number of a process or thread in its group, from 0.
enum class Rank : std::uint32_t {};

// Number of a training step, from 0.
enum class Clock : std::int64_t {};

// A table of a store, in the order in which `Store::add_table` was called.
enum class TableId : std::uint32_t {};

// The plain number behind one of the types above: for indices, arithmetic and printing.
constexpr std::uint64_t number(Key key) { return static_cast<std::uint64_t>(key); }
constexpr std::uint32_t number(Rank rank) { return static_cast<std::uint32_t>(rank); }
constexpr std::int64_t number(Clock clock) { return static_cast<std::int64_t>(clock); }
constexpr std::uint32_t number(TableId table) { return static_cast<std::uint32_t>(table); }

constexpr Clock operator+(Clock clock, std::int64_t steps) { return Clock{number(clock) + steps}; }
constexpr Clock operator-(Clock clock, std::int64_t steps) { return Clock{number(clock) - steps}; }
constexpr std::int64_t operator-(Clock a, Clock b) { return number(a) - number(b); }

}  // namespace gpups
