// SPDX-License-Identifier: Apache-2.0
// The layout of the parameters of dense layers: one array with a matrix for each parameter, whose rows are padded.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "gpups/array.hpp"
#include "kernels/base/check.hpp"
#include "kernels/dense/dense_units.hpp"

namespace gpups::trainer {

// A layer's weights or bias: (rows, columns), rows row_stride(columns) apart.
struct Parameter {
  std::string name;    // "top.0.weights"
  std::size_t offset;  // of its first element in the array
  std::size_t rows, columns;
  float scale;  // initial values are uniform in [begin - scale, begin + scale)
  float begin;

  std::size_t size() const { return rows * row_stride(columns); }
  // Returns the distance to the next parameter.
  std::size_t padded_size() const {
    return (size() + kernels::kDenseAlignment - 1) / kernels::kDenseAlignment * kernels::kDenseAlignment;
  }
  // Returns this parameter's part of an array in the layout of all parameters. T: float, or float const.
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

// The parameters of a model, in the order of their offsets.
class Parameters {
 public:
  // The offset of every parameter is a multiple of this.
  static constexpr std::size_t kAlignment = kernels::kDenseAlignment;

  // Appends a parameter and returns it. Throws Error if another one has its name, by which a checkpoint finds it.
  Parameter add(std::string name, std::size_t rows, std::size_t columns, float scale, float begin = 0) {
    bool const is_new =
        std::none_of(all_.begin(), all_.end(), [&](Parameter const& other) { return other.name == name; });
    GPUPS_REQUIRE(is_new, "a model has two parameters '{}' (a checkpoint finds them by their names): rename one", name);
    Parameter const added{std::move(name), size_, rows, columns, scale, begin};
    size_ += added.padded_size();
    all_.push_back(added);
    return added;
  }
  std::vector<Parameter> const& all() const { return all_; }
  // Returns the number of elements, without padding.
  std::size_t count() const {
    std::size_t count = 0;
    for (Parameter const& p : all_) count += p.rows * p.columns;
    return count;
  }
  // Returns the size of the array, padding included: a multiple of kAlignment.
  std::size_t size() const { return size_; }

 private:
  std::vector<Parameter> all_;
  std::size_t size_ = 0;
};

}  // namespace gpups::trainer
