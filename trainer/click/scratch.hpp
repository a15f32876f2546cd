// SPDX-License-Identifier: Apache-2.0
// Memory for what a model computes of one microbatch: matrices whose columns are known when the model is made, and
// whose rows are as many as the largest microbatch has.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "gpups/array.hpp"

namespace gpups::trainer {

// A matrix of a plan.
enum class Buffer : std::size_t {};

class ScratchPlan {
 public:
  Buffer add(std::size_t columns) {
    columns_.push_back(columns);
    return Buffer{columns_.size() - 1};
  }
  std::vector<std::size_t> const& columns() const { return columns_; }

 private:
  std::vector<std::size_t> columns_;
};

class Scratch {
 public:
  // Padding is zero; who writes to a matrix leaves it so. Waits for `stream`.
  Scratch(Stream& stream, ScratchPlan const& plan, std::size_t rows);
  // REQUIRES: rows <= those it was made for.
  MatrixView<float> matrix(Buffer buffer, std::size_t rows) const {
    return matrices_[static_cast<std::size_t>(buffer)].view().slice(0, rows);
  }
  // One number for each row, without padding. REQUIRES: the buffer has one column.
  View<float> column(Buffer buffer, std::size_t rows) const {
    return {matrices_[static_cast<std::size_t>(buffer)].view().data(), rows,
            matrices_[static_cast<std::size_t>(buffer)].device()};
  }
  std::size_t rows() const { return rows_; }

 private:
  std::vector<Matrix<float>> matrices_;
  std::size_t rows_;
};

// Scratch for as many microbatches as are computed at the same time. Any thread.
class ScratchPool {
 public:
  explicit ScratchPool(ScratchPlan const& plan) : plan_(plan) {}

  // One for `rows` rows: kept from before, or new.
  std::unique_ptr<Scratch> take(Stream& stream, std::size_t rows);
  void give_back(std::unique_ptr<Scratch> scratch);

 private:
  ScratchPlan const& plan_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> free_;
};

}  // namespace gpups::trainer
