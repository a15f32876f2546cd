// SPDX-License-Identifier: Apache-2.0
#include "kernels/rows/row_storage.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "kernels/base/check.hpp"
#include "kernels/base/half.hpp"

namespace gpups::kernels {
namespace {

// The bytes of a huge page of the operating system. Random reads of rows are twice as fast in huge pages.
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

// Returns how many chunks to add to `chunks`. Small chunks share a huge page, but a small table does not take a whole
// one.
std::size_t chunks_to_add(std::size_t chunks, std::size_t chunk_bytes) {
  std::size_t const in_page = std::max<std::size_t>(kHugePageBytes / chunk_bytes, 1);
  return std::min(in_page, std::max<std::size_t>(chunks, 1));
}

// The most chunks of a table: with kChunkRows rows in each, row numbers have 31 bits.
constexpr std::size_t kChunksMax = std::size_t{1} << 17;

// With Growth::kByMoving: the least number of rows, and the least length of the list of chunks, which fills the
// smallest block of memory.
constexpr std::size_t kFewRows = 16, kFewChunks = 8;

// Returns the number of rows that the first chunk has room for, with Growth::kByMoving and `rows` rows.
std::size_t rows_of_first_chunk(std::size_t rows, std::size_t chunk_rows) {
  return std::min(std::max(std::bit_ceil(rows), kFewRows), chunk_rows);
}

std::size_t places_in_list(Growth growth, std::size_t chunks) {
  return growth == Growth::kInPlace ? kChunksMax : std::bit_ceil(std::max(chunks, kFewChunks));
}

}  // namespace

template <class T>
RowStorage<T>::RowStorage(Device device, std::size_t stride, NewRows new_rows, Growth growth)
    : device_(device),
      stride_(stride),
      new_rows_(new_rows),
      growth_(growth),
      list_(device, growth == Growth::kInPlace ? places_in_list(growth, 0) : 0) {}

template <class T>
void RowStorage<T>::reserve(Stream& stream, std::size_t rows) {
  if (stride_ == 0 || rows <= rows_) return;
  std::size_t const chunk_rows = ref().chunk_rows();
  GPUPS_REQUIRE(rows <= kChunksMax * chunk_rows,
                "a table needs room for {} rows (a rank has room for at most {} of their size): use more ranks", rows,
                kChunksMax * chunk_rows);
  if (growth_ == Growth::kByMoving && rows_ < chunk_rows) {
    move_to_larger_chunk(stream, rows_of_first_chunk(rows, chunk_rows));
  }
  while (rows_ < rows) add_chunks(stream);
}

template <class T>
Array<T> RowStorage<T>::make_block(Stream& stream, std::size_t rows) const {
  Array<T> block(device_, rows * stride_);
  if (new_rows_ == NewRows::kZero) memory::fill_bytes(stream, block.data(), 0, block.bytes());
  return block;
}

template <class T>
void RowStorage<T>::move_to_larger_chunk(Stream& stream, std::size_t rows) {
  Array<T> larger = make_block(stream, rows);
  if (rows_ > 0) copy<T>(stream, larger, blocks_.front().view());
  wait_list_chunks(stream, 0, {larger.data()});
  blocks_.clear();
  blocks_.push_back(std::move(larger));
  rows_ = rows;
}

template <class T>
void RowStorage<T>::add_chunks(Stream& stream) {
  std::size_t const rows = ref().chunk_rows(), chunk = rows * stride_, before = rows_ / rows;
  std::size_t const count = std::min(chunks_to_add(before, chunk * sizeof(T)), kChunksMax - before);
  Array<T> block = make_block(stream, count * rows);
  std::vector<T*> addresses(count);
  for (std::size_t c = 0; c < count; ++c) addresses[c] = block.data() + c * chunk;
  wait_list_chunks(stream, before, addresses);
  blocks_.push_back(std::move(block));
  rows_ += count * rows;
}

template <class T>
void RowStorage<T>::wait_list_chunks(Stream& stream, std::size_t first, std::vector<T*> const& chunks) {
  if (std::size_t const places = places_in_list(growth_, first + chunks.size()); places > list_.size()) {
    Array<T*> longer(device_, places);
    copy<T*>(stream, longer, list_.view());
    stream.wait();
    list_ = std::move(longer);
  }
  memory::copy(stream, list_.data() + first, device_, chunks.data(), Device::host(), chunks.size() * sizeof(T*));
  stream.wait();  // the caller frees `chunks` afterwards
}

template <class T>
std::size_t RowStorage<T>::bytes_for(std::size_t rows, std::size_t stride, Growth growth) {
  std::size_t const row_bytes = stride * sizeof(T), chunk_rows = std::size_t{1} << chunk_bits_for(row_bytes);
  if (stride == 0) rows = 0;
  std::size_t chunks = 0, room = 0;
  if (growth == Growth::kByMoving && rows > 0) {
    room = rows_of_first_chunk(rows, chunk_rows);
    chunks = 1;
  }
  while (room < rows) {
    chunks += chunks_to_add(chunks, chunk_rows * row_bytes);
    room = chunks * chunk_rows;
  }
  std::size_t const places = growth == Growth::kByMoving && rows == 0 ? 0 : places_in_list(growth, chunks);
  return room * row_bytes + places * sizeof(T*);
}

template class RowStorage<float>;
template class RowStorage<Half>;
template class RowStorage<BFloat16>;
template class RowStorage<std::uint32_t>;
template class RowStorage<std::uint64_t>;
template class RowStorage<std::int64_t>;

}  // namespace gpups::kernels
