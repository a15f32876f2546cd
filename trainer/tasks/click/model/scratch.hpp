// SPDX-License-Identifier: Apache-2.0
// Memory for the intermediate results of a microbatch: matrices whose columns are known when the model is made, with
// one row for each sample of the largest microbatch.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "gpups/array.hpp"

namespace gpups::trainer {

// A matrix of a plan.
enum class Buffer : std::size_t {};

// The columns of the matrices that a model needs.
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

// The matrices of a plan.
class Scratch {
 public:
  // Fills all matrices with zeros. Code that writes to a matrix must leave its padding zero. Blocks until the stream
  // has no work left.
  Scratch(Stream& stream, ScratchPlan const& plan, std::size_t rows);
  // The first rows of a matrix. REQUIRES: rows <= this->rows().
  MatrixView<float> matrix(Buffer buffer, std::size_t rows) const {
    return matrices_[static_cast<std::size_t>(buffer)].view().slice(0, rows);
  }
  // A matrix of one column as an array without padding. REQUIRES: the buffer has one column.
  View<float> column(Buffer buffer, std::size_t rows) const {
    return {matrices_[static_cast<std::size_t>(buffer)].view().data(), rows,
            matrices_[static_cast<std::size_t>(buffer)].device()};
  }
  std::size_t rows() const { return rows_; }

 private:
  std::vector<Matrix<float>> matrices_;
  std::size_t rows_;
};

// A Scratch for each microbatch that is computed at the same time. Any thread.
class ScratchPool {
 public:
  explicit ScratchPool(ScratchPlan const& plan) : plan_(plan) {}

  // Returns a Scratch for at least `rows` rows, reused or new.
  std::unique_ptr<Scratch> take(Stream& stream, std::size_t rows);
  // Keeps a Scratch for reuse.
  void give_back(std::unique_ptr<Scratch> scratch);

 private:
  ScratchPlan const& plan_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> free_;
};

}  // namespace gpups::trainer
