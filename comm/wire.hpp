// SPDX-License-Identifier: Apache-2.0
// What a message body is made of: integers of fixed width, little-endian and unpadded, and lists with their length in
// front. A reader trusts nothing: it checks every length against the bytes that are there before it uses any memory.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpups/error.hpp"

namespace gpups::comm {

static_assert(std::endian::native == std::endian::little, "numbers are sent as they lie in memory");

// A message that is too short, too long or claims to hold more than it does.
class WireError : public Error {
 public:
  using Error::Error;
};

// The width is part of the format, so it is named at each use: put<std::uint32_t>(x).
template <class T>
concept WireNumber = (std::integral<T> && !std::same_as<T, bool>) || std::is_enum_v<T>;

class Writer {
 public:
  Writer() = default;
  // Gets memory for so many bytes; it may become more.
  explicit Writer(std::size_t bytes) { body_.reserve(bytes); }

  template <WireNumber T>
  void put(std::type_identity_t<T> value) {
    append(&value, sizeof value);
  }
  // 64-bit number of elements, then the elements.
  template <WireNumber T>
  void put_list(std::span<T const> values) {
    put<std::uint64_t>(values.size());
    append(values.data(), values.size_bytes());
  }
  void put_text(std::string_view text) { put_list(std::span(text.data(), text.size())); }

  std::size_t size() const { return body_.size(); }
  std::string const& body() const { return body_; }
  // The body; the writer is empty afterwards.
  std::string take() { return std::exchange(body_, {}); }

 private:
  void append(void const* from, std::size_t bytes) {
    if (bytes != 0) body_.append(static_cast<char const*>(from), bytes);
  }
  std::string body_;
};

// Refers to the body, which must outlive it. Everything but left() throws WireError.
class Reader {
 public:
  explicit Reader(std::string_view body) : rest_(body) {}

  template <WireNumber T>
  T get() {
    T value;
    std::memcpy(&value, take(1, sizeof value).data(), sizeof value);
    return value;
  }
  template <WireNumber T>
  std::vector<T> get_list() {
    std::string_view const bytes = list(sizeof(T));
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  // Refers to the body.
  std::string_view get_text() { return list(1); }

  std::size_t left() const { return rest_.size(); }
  // Call at the end: nothing may be left.
  void end() const;

 private:
  std::string_view take(std::uint64_t count, std::size_t size);
  std::string_view list(std::size_t size) { return take(get<std::uint64_t>(), size); }

  std::string_view rest_;
};

}  // namespace gpups::comm
