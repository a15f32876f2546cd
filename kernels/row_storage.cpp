// SPDX-License-Identifier: Apache-2.0
#include "kernels/row_storage.hpp"

#include <algorithm>

#include "kernels/check.hpp"
#include "kernels/half.hpp"

namespace gpups::kernels {
namespace {

// Rows that are read at random are found twice as fast in huge pages, of which the operating system has one for each
// so many bytes.
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

// Chunks that are made at a time where there are `chunks`: small ones share a huge page, but a small table does not
// take a whole one.
std::size_t chunks_to_add(std::size_t chunks, std::size_t chunk_bytes) {
  std::size_t const in_page = std::max<std::size_t>(kHugePageBytes / chunk_bytes, 1);
  return std::min(in_page, std::max<std::size_t>(chunks, 1));
}

}  // namespace

template <class T>
RowStorage<T>::RowStorage(Device device, std::size_t stride, NewRows new_rows, std::size_t capacity_rows)
    : device_(device),
      stride_(stride),
      new_rows_(new_rows),
      table_(device, (capacity_rows + kChunkRows - 1) / kChunkRows) {}

template <class T>
void RowStorage<T>::reserve(Stream& stream, std::size_t rows) {
  if (stride_ == 0) return;
  std::size_t const chunk = kChunkRows * stride_;
  while (rows_reserved() < rows) {
    GPUPS_REQUIRE(chunks_ < table_.size(), "a table has {} rows (its row numbers have 31 bits): use more ranks", rows);
    std::size_t const count = std::min(chunks_to_add(chunks_, chunk * sizeof(T)), table_.size() - chunks_);
    auto const& block = blocks_.emplace_back(device_, count * chunk);
    if (new_rows_ == NewRows::kZero) memory::fill_bytes(stream, block.data(), 0, block.bytes());
    std::vector<T*> addresses(count);
    for (std::size_t c = 0; c < count; ++c) addresses[c] = block.data() + c * chunk;
    memory::copy(stream, table_.data() + chunks_, device_, addresses.data(), Device::host(), count * sizeof(T*));
    stream.wait();  // `addresses` go
    chunks_ += count;
  }
}

template <class T>
std::size_t RowStorage<T>::bytes_for(std::size_t rows, std::size_t stride) {
  if (stride == 0) return 0;
  std::size_t const chunk_bytes = kChunkRows * stride * sizeof(T);
  std::size_t chunks = 0;
  while (chunks * kChunkRows < rows) chunks += chunks_to_add(chunks, chunk_bytes);
  return chunks * chunk_bytes;
}

template class RowStorage<float>;
template class RowStorage<Half>;
template class RowStorage<BFloat16>;
template class RowStorage<std::uint32_t>;
template class RowStorage<std::uint64_t>;
template class RowStorage<std::int64_t>;

}  // namespace gpups::kernels
