// SPDX-License-Identifier: Apache-2.0
// Memory that knows its device: Array and Matrix own, View and MatrixView refer.
//
// Rows of a Matrix are padded to `row_stride(columns)` elements, so that every row starts on a vector boundary; what
// is in the padding of a float matrix made by this library is zero.
#pragma once

#include <cassert>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpups/device.hpp"
#include "gpups/stream.hpp"

namespace gpups {

// Elements from one row to the next for rows of `columns` elements of 4 bytes: multiples of 64 bytes from 16 columns
// on, of 16 bytes below.
constexpr std::size_t row_stride(std::size_t columns) {
  std::size_t const step = columns >= 16 ? 16 : 4;
  return (columns + step - 1) / step * step;
}

// Refers to `size` elements at `data`, on `device`.
template <class T>
class View {
 public:
  constexpr View() = default;
  constexpr View(T* data, std::size_t size, Device device = {}) : data_(data), size_(size), device_(device) {}
  // A read-only view of a writable one.
  template <class U>
  requires(std::is_same_v<T, U const>) constexpr View(View<U> other)
      : View(other.data(), other.size(), other.device()) {}
  // The elements of a vector, on the host.
  template <class U>
  requires(std::is_same_v<std::remove_const_t<T>, U> && !std::is_same_v<U, bool>) View(std::vector<U>& v)
      : View(v.data(), v.size()) {}
  template <class U>
  requires(std::is_same_v<T, U const> && !std::is_same_v<U, bool>) View(std::vector<U> const& v)
      : View(v.data(), v.size()) {}

  constexpr T* data() const { return data_; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr std::size_t bytes() const { return size_ * sizeof(T); }
  constexpr Device device() const { return device_; }
  constexpr T& operator[](std::size_t i) const { return data_[i]; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }
  // REQUIRES: first + count <= size().
  constexpr View slice(std::size_t first, std::size_t count) const { return {data_ + first, count, device_}; }
  std::span<T> span() const { return {data_, size_}; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
  Device device_{};
};

// Refers to `rows` rows of `columns` elements, `stride` elements apart.
template <class T>
class MatrixView {
 public:
  constexpr MatrixView() = default;
  constexpr MatrixView(T* data, std::size_t rows, std::size_t columns, std::size_t stride, Device device = {})
      : data_(data), rows_(rows), columns_(columns), stride_(stride), device_(device) {}
  template <class U>
  requires(std::is_same_v<T, U const>) constexpr MatrixView(MatrixView<U> other)
      : MatrixView(other.data(), other.rows(), other.columns(), other.stride(), other.device()) {}

  constexpr T* data() const { return data_; }
  constexpr std::size_t rows() const { return rows_; }
  constexpr std::size_t columns() const { return columns_; }
  constexpr std::size_t stride() const { return stride_; }
  constexpr Device device() const { return device_; }
  constexpr T* row(std::size_t i) const { return data_ + i * stride_; }
  // REQUIRES: first + count <= rows().
  constexpr MatrixView slice(std::size_t first, std::size_t count) const {
    return {data_ + first * stride_, count, columns_, stride_, device_};
  }
  // All elements, padding included.
  constexpr View<T> flat() const { return {data_, rows_ * stride_, device_}; }

 private:
  T* data_ = nullptr;
  std::size_t rows_ = 0, columns_ = 0, stride_ = 0;
  Device device_{};
};

namespace memory {

// Blocks come from a cache of freed ones where one fits; large host blocks lie in huge pages. Contents are undefined.
// Throws Error where there is no memory.
void* allocate(Device device, std::size_t bytes);
void release(Device device, void* block, std::size_t bytes) noexcept;
// Of so many elements; where they are more than any machine has, so many that allocate() throws.
constexpr std::size_t bytes_of(std::size_t count, std::size_t element_bytes) {
  constexpr std::size_t most = ~std::size_t{0} / 4;
  return element_bytes != 0 && count > most / element_bytes ? most : count * element_bytes;
}
// Bytes handed out now and at most so far, and the bytes kept for reuse.
struct Usage {
  std::size_t bytes, bytes_peak, bytes_cached;
};
Usage usage(Device device);

// Copies between any two devices; queued on `stream`, which belongs to one of them.
void copy(Stream& stream, void* to, Device to_device, void const* from, Device from_device, std::size_t bytes);
// Sets every byte; queued on `stream`.
void fill_bytes(Stream& stream, void* to, unsigned char byte, std::size_t bytes);

}  // namespace memory

// Owns `size` elements on one device. Move-only. A block that is freed goes back to a cache that any stream may take
// it from: REQUIRES that work on it is done, or is on the stream that will use it next.
template <class T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Array() = default;
  // Throws Error where there is no memory.
  Array(Device device, std::size_t size)
      : data_(size == 0 ? nullptr : static_cast<T*>(memory::allocate(device, memory::bytes_of(size, sizeof(T))))),
        size_(size),
        room_(size),
        device_(device) {}
  Array(Array&& other) noexcept { swap(other); }
  Array& operator=(Array&& other) noexcept {
    Array moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~Array() {
    if (data_ != nullptr) memory::release(device_, data_, room_ * sizeof(T));
  }

  // Forgets all but the first `size` elements; their memory goes when the array does. REQUIRES: size <= size().
  void truncate(std::size_t size) {
    assert(size <= size_);
    size_ = size;
  }

  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t bytes() const { return size_ * sizeof(T); }
  Device device() const { return device_; }
  // REQUIRES: the array is on the host.
  T& operator[](std::size_t i) const {
    assert(device_.is_host() && i < size_);
    return data_[i];
  }
  View<T> view() const { return {data_, size_, device_}; }
  operator View<T>() const { return view(); }
  operator View<T const>() const { return view(); }

 private:
  void swap(Array& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(room_, other.room_);
    std::swap(device_, other.device_);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0, room_ = 0;
  Device device_{};
};

// Owns a (rows, columns) matrix with padded rows.
template <class T>
class Matrix {
 public:
  Matrix() = default;
  Matrix(Device device, std::size_t rows, std::size_t columns)
      : elements_(device, memory::bytes_of(rows, row_stride(columns))), rows_(rows), columns_(columns) {}

  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  std::size_t stride() const { return row_stride(columns_); }
  Device device() const { return elements_.device(); }
  // REQUIRES: the matrix is on the host.
  std::span<T> row(std::size_t i) const {
    assert(device().is_host() && i < rows_);
    return {elements_.data() + i * stride(), columns_};
  }
  MatrixView<T> view() const { return {elements_.data(), rows_, columns_, stride(), device()}; }
  operator MatrixView<T>() const { return view(); }
  operator MatrixView<T const>() const { return view(); }

 private:
  Array<T> elements_;
  std::size_t rows_ = 0, columns_ = 0;
};

// Copies all of `from` to the beginning of `to`; queued on `stream`. REQUIRES: to.size() >= from.size().
template <class T>
void copy(Stream& stream, View<T> to, View<std::type_identity_t<T> const> from) {
  assert(to.size() >= from.size());
  memory::copy(stream, to.data(), to.device(), from.data(), from.device(), from.bytes());
}

// A host vector's elements on the stream's device; queued on `stream`, and waits for it where that is a GPU, so that
// the vector may go.
template <class T>
Array<T> to_device(Stream& stream, std::vector<T> const& from) {
  Array<T> to(stream.device(), from.size());
  copy<T>(stream, to, View<T const>(from));
  stream.wait();
  return to;
}

// The elements as a host vector; waits for `stream`.
template <class T>
std::vector<std::remove_const_t<T>> to_host(Stream& stream, View<T> from) {
  std::vector<std::remove_const_t<T>> to(from.size());
  copy<std::remove_const_t<T>>(stream, View<std::remove_const_t<T>>(to), from);
  stream.wait();
  return to;
}

}  // namespace gpups
