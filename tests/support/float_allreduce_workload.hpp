// SPDX-License-Identifier: Apache-2.0
// Allreduces of floats with every algorithm, of arrays and of sparse vectors, several in flight at a time. Throws if a
// sum is wrong.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "gpups/gpups.hpp"

namespace gpups::test {

// Runs and checks the allreduces on one rank.
class FloatSums {
 public:
  // Values are whole numbers, so that sums are exact in any order.
  FloatSums(Group const& group, Stream& stream, std::size_t size) : group_(group), stream_(stream), size_(size) {}

  // adds: whether the device fabric of the ranks can sum, like NCCL.
  void check_all(bool adds = false) {
    for (auto const& algorithm : allreduce_algorithms()) {
      if (adds || !algorithm.by_nccl) check({.algorithm = algorithm.name});
    }
    check({});
    auto const scatter = group_.begin_reduce_scatter(stream_, vector());
    auto const ranks = static_cast<std::uint64_t>(group_.size());
    check_vector(group_.wait_result(stream_, scatter), size_ * me() / ranks, size_ * (me() + 1) / ranks);
  }

 private:
  std::uint64_t me() const { return number(group_.rank()); }
  static float term(std::uint64_t rank, std::size_t i) { return static_cast<float>((rank + 1) * (i % 1000) + rank); }
  // Whether a rank's sparse vector contains element i.
  static bool names(std::uint64_t rank, std::size_t i) { return (i + rank) % 7 == 0 || i % 50 == 3; }
  float sum(std::size_t i, bool sparse) const {
    float sum = 0;
    for (std::uint64_t rank = 0; rank < static_cast<std::uint64_t>(group_.size()); ++rank) {
      if (!sparse || names(rank, i)) sum += term(rank, i);
    }
    return sum;
  }

  // All sums of an algorithm are in flight at the same time, and waited for in another order.
  void check(AllreduceOptions const& options) {
    auto written = dense(), given = dense();
    auto const stays = std::make_shared<Array<float>>(dense());
    auto const writes = group_.begin_allreduce(stream_, written, options);
    auto const sparse = group_.begin_allreduce(stream_, vector(), options);
    auto const keeps = group_.begin_allreduce(stream_, stays->view(), stays, options);
    auto const keeps_sparse = group_.begin_allreduce(stream_, kept_vector(), options);
    auto const gives = group_.begin_allreduce(stream_, std::move(given), options);
    auto const sums = group_.wait_result(stream_, gives);
    check_vector(sums, 0, size_, false);
    group_.wait_allreduce(stream_, writes);
    if (to_host(stream_, written.view()) != to_host(stream_, sums.values.view())) {
      throw std::logic_error("two sums of the same arrays differ");
    }
    check_vector(group_.wait_result(stream_, keeps), 0, size_, false);
    if (to_host(stream_, stays->view()) != to_host(stream_, dense().view())) {
      throw std::logic_error("an allreduce has changed an array that it must keep");
    }
    check_vector(group_.wait_result(stream_, keeps_sparse), 0, size_);
    check_vector(group_.wait_result(stream_, sparse), 0, size_);
  }

  Array<float> dense() {
    std::vector<float> values(size_);
    for (std::size_t i = 0; i < size_; ++i) values[i] = term(me(), i);
    return to_device(stream_, values);
  }
  SparseView vector() {
    vector_ = kept_vector();
    return {vector_.size, vector_.indices, vector_.values};
  }
  SparseView kept_vector() {
    std::vector<std::uint32_t> indices;
    std::vector<float> values;
    for (std::size_t i = 0; i < size_; ++i) {
      if (!names(me(), i)) continue;
      indices.push_back(static_cast<std::uint32_t>(i));
      values.push_back(term(me(), i));
    }
    struct Lists {
      Array<std::uint32_t> indices;
      Array<float> values;
    };
    auto const lists = std::make_shared<Lists>(Lists{to_device(stream_, indices), to_device(stream_, values)});
    return {size_, lists->indices, lists->values, lists};
  }

  void check_vector(ReducedVector const& vector, std::uint64_t first, std::uint64_t end, bool sparse = true) {
    auto const values = to_host(stream_, vector.values.view());
    auto const indices = to_host(stream_, vector.indices.view());
    std::vector<float> all(vector.size, 0);
    for (std::size_t i = 0; i < values.size(); ++i) all.at(vector.sparse ? indices.at(i) - first : i) = values[i];
    bool right = vector.first == first && vector.first + vector.size == end;
    for (std::size_t i = 0; right && i < all.size(); ++i) right = all[i] == sum(first + i, sparse);
    if (!right) throw std::logic_error(fmt::format("a sum of {} floats is wrong on rank {}", size_, me()));
  }

  Group group_;
  Stream& stream_;
  std::size_t size_;
  SparseView vector_;  // the input of an allreduce in flight
};

}  // namespace gpups::test
