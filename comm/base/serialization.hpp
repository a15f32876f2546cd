// SPDX-License-Identifier: Apache-2.0
// Writes and reads message bodies: integers of fixed width, little-endian and unpadded, and lists that start with their
// length. The reader checks every length against the bytes that are left before it allocates memory.
#pragma once

#include <fmt/core.h>

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

static_assert(std::endian::native == std::endian::little, "numbers are sent in the byte order of memory");

// Thrown for a message that is too short, too long, or gives a length that exceeds its bytes.
class SerializationError : public Error {
 public:
  using Error::Error;
};

// The width is part of the format, so each use spells it out: put<std::uint32_t>(x).
template <class T>
concept SerializedNumber = (std::integral<T> && !std::same_as<T, bool>) || std::is_enum_v<T>;

// Builds a message body.
class Writer {
 public:
  Writer() = default;
  // Reserves memory for `bytes` bytes; the body can grow beyond that.
  explicit Writer(std::size_t bytes) { body_.reserve(bytes); }

  template <SerializedNumber T>
  void put(std::type_identity_t<T> value) {
    append(&value, sizeof value);
  }
  // Appends the number of elements as 64 bits, then the elements.
  template <SerializedNumber T>
  void put_list(std::span<T const> values) {
    put<std::uint64_t>(values.size());
    append(values.data(), values.size_bytes());
  }
  void put_text(std::string_view text) { put_list(std::span(text.data(), text.size())); }

  std::size_t size() const { return body_.size(); }
  std::string const& body() const { return body_; }
  // Returns the body and leaves the writer empty.
  std::string take() { return std::exchange(body_, {}); }

 private:
  void append(void const* from, std::size_t bytes) {
    if (bytes != 0) body_.append(static_cast<char const*>(from), bytes);
  }
  std::string body_;
};

// Reads a message body, which must outlive the reader. All functions except left() throw SerializationError.
class Reader {
 public:
  explicit Reader(std::string_view body) : rest_(body) {}

  template <SerializedNumber T>
  T get() {
    T value;
    std::memcpy(&value, take(1, sizeof value).data(), sizeof value);
    return value;
  }
  template <SerializedNumber T>
  std::vector<T> get_list() {
    std::string_view const bytes = list(sizeof(T));
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  // The result refers to the body.
  std::string_view get_text() { return list(1); }

  // Returns the number of bytes that have not been read.
  std::size_t left() const { return rest_.size(); }
  // Call this at the end: throws SerializationError if bytes are left.
  void end() const;

 private:
  std::string_view take(std::uint64_t count, std::size_t size);
  std::string_view list(std::size_t size) { return take(get<std::uint64_t>(), size); }

  std::string_view rest_;
};

inline std::string_view Reader::take(std::uint64_t count, std::size_t size) {
  // Compared by division, because the product may overflow.
  if (count > rest_.size() / size) {
    throw SerializationError(
        fmt::format("a message from another rank is too short ({} bytes are left, but {} elements of {} bytes should "
                    "follow): run the same "
                    "build on all ranks",
                    rest_.size(), count, size));
  }
  std::string_view const taken = rest_.substr(0, count * size);
  rest_.remove_prefix(taken.size());
  return taken;
}

inline void Reader::end() const {
  if (rest_.empty()) return;
  throw SerializationError(fmt::format(
      "a message from another rank is too long by {} bytes: run the same build on all ranks", rest_.size()));
}

}  // namespace gpups::comm
