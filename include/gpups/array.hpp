// SPDX-License-Identifier: Apache-2.0
// Arrays on a device. Array and Matrix own memory; View and MatrixView refer to memory of the library or the
// application. The classes do not synchronise threads.
//
//   Array<float> x(Device::host(), 3);           // uninitialised
//   Matrix<float> rows(Device::cuda(0), 100, 64), host_rows(Device::host(), 100, 64);
//   View<float> const given(pointer, 1000, Device::cuda(0));  // an application's memory, not owned
//   std::vector<float> const result = to_host(stream, given);  // blocks
//   for (std::size_t r = 0; r < host_rows.rows(); ++r) use(host_rows.row(r));  // std::span of 64 floats
//
// A row of a Matrix is padded to row_stride(columns) elements, so that every row is aligned for vector loads. The
// library writes zeros to the padding of float matrices.
#pragma once

#include <cassert>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpups/compiler.hpp"
#include "gpups/device.hpp"
#include "gpups/stream.hpp"

namespace gpups {

// Returns the distance between rows of `columns` elements, in elements. Rows of 4-byte elements start at multiples of
// 64 bytes (16 columns and more) or of 16 bytes (fewer columns).
constexpr std::size_t row_stride(std::size_t columns) {
  std::size_t const step = columns >= 16 ? 16 : 4;
  return (columns + step - 1) / step * step;
}

// A non-owning reference to `size` contiguous elements at `data` on `device`. Elements can be accessed by operator[],
// begin() and span() if the device is the host. Indices are not checked.
template <class T>
class View {
 public:
  constexpr View() = default;
  constexpr View(T* data, std::size_t size, Device device = {}) : data_(data), size_(size), device_(device) {}
  // Converts a writable view to a read-only view.
  template <class U>
  requires(std::is_same_v<T, U const>) constexpr View(View<U> other)
      : View(other.data(), other.size(), other.device()) {}
  // Refers to the elements of a vector, on the host.
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
  // Returns the elements first .. first + count - 1. REQUIRES: first + count <= size().
  constexpr View slice(std::size_t first, std::size_t count) const { return {data_ + first, count, device_}; }
  std::span<T> span() const { return {data_, size_}; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
  Device device_{};
};

// A non-owning reference to a row-major matrix, (rows, columns). Rows start `stride` elements apart; stride >= columns.
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
  // Returns the address of row i, on the matrix's device.
  constexpr T* row(std::size_t i) const { return data_ + i * stride_; }
  // Returns the rows first .. first + count - 1. REQUIRES: first + count <= rows().
  constexpr MatrixView slice(std::size_t first, std::size_t count) const {
    return {data_ + first * stride_, count, columns_, stride_, device_};
  }
  // Returns all elements including the padding.
  constexpr View<T> flat() const { return {data_, rows_ * stride_, device_}; }

 private:
  T* data_ = nullptr;
  std::size_t rows_ = 0, columns_ = 0, stride_ = 0;
  Device device_{};
};

// Memory of devices. Applications normally use Array and Matrix instead.
namespace memory {

// Returns a block of `bytes` bytes with undefined contents, from the cache of released blocks if one fits. Large host
// blocks use huge pages. Throws Error if there is no memory. Any thread.
GPUPS_EXPORT void* allocate(Device device, std::size_t bytes);
// Returns a block to the cache. bytes: the size that was allocated. Any thread. REQUIRES: as for the destructor of
// Array.
GPUPS_EXPORT void release(Device device, void* block, std::size_t bytes) noexcept;
// Returns count * element_bytes. On overflow it returns a number that is too large for allocate(), which then throws.
constexpr std::size_t bytes_of(std::size_t count, std::size_t element_bytes) {
  constexpr std::size_t most = ~std::size_t{0} / 4;
  return element_bytes != 0 && count > most / element_bytes ? most : count * element_bytes;
}
// Bytes that are allocated now, the maximum so far, and bytes in the cache of released blocks.
struct Usage {
  std::size_t bytes, bytes_peak, bytes_cached;
};
// Returns the memory usage of a device, for this process. Any thread.
GPUPS_EXPORT Usage usage(Device device);

// Copies `bytes` bytes between any two devices. Queued on `stream`, which must be on one of the two.
GPUPS_EXPORT void copy(Stream& stream, void* to, Device to_device, void const* from, Device from_device,
                       std::size_t bytes);
// Copies `bytes` bytes to the host, as they are when the work that is queued now is done. Blocks until then.
GPUPS_EXPORT void read_back(Stream& stream, void* to, void const* from, Device from_device, std::size_t bytes);
// Sets `bytes` bytes at `to`, on the stream's device, to `byte`. Queued on `stream`.
GPUPS_EXPORT void fill_bytes(Stream& stream, void* to, unsigned char byte, std::size_t bytes);

}  // namespace memory

// Owns `size` elements on one device, with undefined contents at first. Move-only; a moved-from Array is empty. The
// destructor does not block: it returns the memory to a cache, and the thread's next Array of the size may get it
// immediately. Other threads, and the library itself, get it when the work that was queued on the device by then is
// done. REQUIRES: at destruction, work on the memory is done, or the next work that the application queues in this
// thread is on the same stream.
template <class T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Array() = default;
  // Allocates uninitialised elements. Throws Error if there is no memory.
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

  // Reduces the array to its first `size` elements, without freeing memory. REQUIRES: size <= size().
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

// Owns a matrix, (rows, columns), with rows padded to row_stride(columns). Move-only. Memory rules are those of Array.
template <class T>
class Matrix {
 public:
  Matrix() = default;
  // Allocates uninitialised elements. Throws Error if there is no memory.
  Matrix(Device device, std::size_t rows, std::size_t columns)
      : elements_(device, memory::bytes_of(rows, padded(columns))), rows_(rows), columns_(columns) {}

  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  std::size_t stride() const { return row_stride(columns_); }
  Device device() const { return elements_.device(); }
  // Returns row i, without its padding. REQUIRES: the matrix is on the host.
  std::span<T> row(std::size_t i) const {
    assert(device().is_host() && i < rows_);
    return {elements_.data() + i * stride(), columns_};
  }
  MatrixView<T> view() const { return {elements_.data(), rows_, columns_, stride(), device()}; }
  operator MatrixView<T>() const { return view(); }
  operator MatrixView<T const>() const { return view(); }

 private:
  // The stride, or a number of elements that no memory has where that would overflow.
  static constexpr std::size_t padded(std::size_t columns) {
    constexpr std::size_t most = ~std::size_t{0} / 4;
    return columns > most ? most : row_stride(columns);
  }

  Array<T> elements_;
  std::size_t rows_ = 0, columns_ = 0;
};

// Copies `from` to the first from.size() elements of `to`, between any two devices. Queued on `stream`, which must be
// on one of the two. REQUIRES: to.size() >= from.size().
template <class T>
void copy(Stream& stream, View<T> to, View<std::type_identity_t<T> const> from) {
  assert(to.size() >= from.size());
  memory::copy(stream, to.data(), to.device(), from.data(), from.device(), from.bytes());
}

// Returns a copy of `from` on the stream's device. Blocks until all work queued on `stream` is done.
template <class T>
Array<T> to_device(Stream& stream, std::vector<T> const& from) {
  Array<T> to(stream.device(), from.size());
  copy<T>(stream, to, View<T const>(from));
  stream.wait();
  return to;
}

// Returns a copy of `from` as a host vector. Blocks until all work queued on `stream` is done.
template <class T>
std::vector<std::remove_const_t<T>> to_host(Stream& stream, View<T> from) {
  std::vector<std::remove_const_t<T>> to(from.size());
  memory::read_back(stream, to.data(), from.data(), from.device(), from.bytes());
  return to;
}

}  // namespace gpups
