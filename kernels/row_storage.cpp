// SPDX-License-Identifier: Apache-2.0
#include "kernels/row_storage.hpp"

#include "kernels/check.hpp"
#include "kernels/half.hpp"

namespace gpups::kernels {

template <class T>
RowStorage<T>::RowStorage(Device device, std::size_t stride, NewRows new_rows, std::size_t capacity_rows)
    : device_(device),
      stride_(stride),
      new_rows_(new_rows),
      table_(device, (capacity_rows + kChunkRows - 1) / kChunkRows) {}

template <class T>
void RowStorage<T>::reserve(Stream& stream, std::size_t rows) {
  if (stride_ == 0) return;
  while (rows_reserved() < rows) {
    GPUPS_REQUIRE(chunks_.size() < table_.size(), "a table has {} rows (its row numbers have 31 bits): use more ranks",
                  rows);
    chunks_.emplace_back(device_, kChunkRows * stride_);
    T* const address = chunks_.back().data();
    if (new_rows_ == NewRows::kZero) memory::fill_bytes(stream, address, 0, chunks_.back().bytes());
    memory::copy(stream, table_.data() + chunks_.size() - 1, device_, &address, Device::host(), sizeof address);
    stream.wait();  // `address` is on this function's stack
  }
}

template class RowStorage<float>;
template class RowStorage<Half>;
template class RowStorage<BFloat16>;
template class RowStorage<std::uint32_t>;
template class RowStorage<std::uint64_t>;
template class RowStorage<std::int64_t>;

}  // namespace gpups::kernels
