// SPDX-License-Identifier: Apache-2.0
// Where the parameters of dense layers lie: one after the other in one array, each a matrix with padded rows.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "gpups/array.hpp"
#include "kernels/dense/dense_units.hpp"

namespace gpups::trainer {

// A layer's weights or bias: (rows, columns), rows row_stride(columns) apart.
struct Parameter {
  std::string name;    // "top.0.weights"
  std::size_t offset;  // of its first number in the array
  std::size_t rows, columns;
  float scale;  // numbers begin uniformly in [begin - scale, begin + scale)
  float begin;

  std::size_t size() const { return rows * row_stride(columns); }
  // To where the next one begins.
  std::size_t padded_size() const {
    return (size() + kernels::kDenseAlignment - 1) / kernels::kDenseAlignment * kernels::kDenseAlignment;
  }
  // T: float, or float const. all: what holds every parameter, or a gradient for each.
  template <class T>
  MatrixView<T> matrix(View<T> all) const {
    return {all.data() + offset, rows, columns, row_stride(columns), all.device()};
  }
  // REQUIRES: rows == 1.
  template <class T>
  View<T> vector(View<T> all) const {
    return all.slice(offset, columns);
  }
};

class Parameters {
 public:
  // Parameters begin at multiples of this.
  static constexpr std::size_t kAlignment = kernels::kDenseAlignment;

  // Returns the parameter's place. Names are distinct.
  Parameter add(std::string name, std::size_t rows, std::size_t columns, float scale, float begin = 0) {
    Parameter const added{std::move(name), size_, rows, columns, scale, begin};
    size_ += added.padded_size();
    all_.push_back(added);
    return added;
  }
  std::vector<Parameter> const& all() const { return all_; }
  // The numbers, without padding.
  std::size_t count() const {
    std::size_t count = 0;
    for (Parameter const& p : all_) count += p.rows * p.columns;
    return count;
  }
  // Of the array: the numbers and their padding. A multiple of kAlignment.
  std::size_t size() const { return size_; }

 private:
  std::vector<Parameter> all_;
  std::size_t size_ = 0;
};

}  // namespace gpups::trainer
