// SPDX-License-Identifier: Apache-2.0
// Top-k allreduce of a dense gradient with error feedback (Alistarh et al., NeurIPS 2018).
//
//   TopKAllreduce layer(group, weights.size(), {.density = .01});
//   layer.begin(stream, gradient);  // in every step, on every rank
//   layer.wait(stream, sum);        // the sum over ranks of the elements that were sent
//
// A rank sends about density * size elements, those of largest magnitude, and keeps the others in a residual that is
// added to its next gradient. Rounding errors of the wire format and elements that the algorithm drops go to the
// residual of some rank too. All numbers are multiples of 2^grid_log2, so the sums so far and the residuals of all
// ranks add up to the sum of all gradients exactly.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpups/allreduce.hpp"
#include "gpups/array.hpp"
#include "gpups/group.hpp"
#include "gpups/owner.hpp"
#include "gpups/stream.hpp"

namespace gpups {

// Options of a TopKAllreduce, equal on all ranks. If the number of elements to send, the algorithm, the format or the
// grid differ, wait() throws PeerError on every rank. Momentum is not compared.
struct TopKOptions {
  double density = .01;  // fraction of the elements that a rank sends, in (0, 1]
  // Warm-up: in the first warmup_steps sums the fraction falls exponentially from initial_density (in [density, 1]) to
  // `density`. With 0 warmup_steps, initial_density is not used.
  double initial_density = .25;
  std::uint64_t warmup_steps = 0;
  // Momentum correction (Deep Gradient Compression, Lin et al., ICLR 2018): each rank sums the velocity
  // v = momentum * v + g instead of the gradient g, and sets v to 0 where an element was sent. Use an optimizer without
  // momentum. In [0, 1); 0: off.
  float momentum = 0;
  // A name of top_k_algorithms(), or "auto": "sparse_allgather" for two ranks, else "spardl". "auto" does not depend
  // on link costs, because residuals depend on the algorithm.
  std::string algorithm = "auto";
  // Wire format of values: kFloat (sends units exactly), kHalf, kBFloat16 or kInt8. Rounding errors, and what kHalf
  // cuts off beyond 65,504, go to the residual.
  WireFormat format = WireFormat::kBFloat16;
  int grid_log2 = -30;  // a unit is 2^grid_log2, -200 .. 200; gradients are below 2^46 units in magnitude
};

// Returns the algorithms. "spardl" is the one of SparDL (Zhao et al., ICDE 2024): the sum is sparsified too, so a
// rank sends about twice its own elements for any number of ranks.
std::span<AllreduceAlgorithm const> top_k_algorithms();

// The allreduce of one gradient, such as that of one layer, with its residual. Uses 8 bytes of host memory per element,
// and 4 more with momentum. One sum of an object may be in flight; sums of several objects, up to
// Group::kAllreducesMax, may be in flight together. One thread at a time.
class TopKAllreduce {
 public:
  // size: elements of the gradient, below 2^32 - 1. Throws Error for invalid options.
  TopKAllreduce(Group const& group, std::uint64_t size, TopKOptions const& options);
  // A sum in flight goes on, because other ranks need it, and counts towards Group::kAllreducesMax until it is done.
  // Its result and the residual are lost.
  ~TopKAllreduce();
  TopKAllreduce(TopKAllreduce&&) noexcept;
  TopKAllreduce& operator=(TopKAllreduce&&) noexcept;

  // Starts the sum of `gradient`, (size), plus the residual. Collective; see Group::begin_allreduce(). Blocks until
  // `stream` is done, because the host selects the elements; the caller may then change `gradient`. Throws Error if an
  // element is not finite or too large for the grid; the object must not be used after that.
  void begin(Stream& stream, View<float const> gradient);
  // The same for a gradient in units of 2^grid_log2.
  void begin(Stream& stream, View<std::int64_t const> gradient);
  // The same for a gradient that may be invalid. Returns the index of the first invalid element, if any, after starting
  // an empty sum so that other ranks need not wait in vain. The caller then informs all ranks.
  std::optional<std::uint64_t> begin_checked(Stream& stream, View<std::int64_t const> gradient);
  // Blocks until the sum is done, and writes it to `sums`, (size): zero where no rank sent an element. All ranks get
  // equal bits. Throws as Group::wait_allreduce().
  void wait(Stream& stream, View<float> sums);
  void wait(Stream& stream, View<std::int64_t> sums);  // in units of 2^grid_log2

  // Returns the fraction of elements that the next sum sends.
  double density() const;
  // Returns the algorithm, also for "auto".
  AllreduceAlgorithm const& algorithm() const;
  // Returns this rank's residual, (size), in units, on the host. REQUIRES: no sum is in flight.
  View<std::int64_t const> residual() const;

  // Returns this rank's state for a checkpoint. REQUIRES: no sum is in flight.
  std::string save() const;
  // Returns on rank 0 what save() returns on each rank, in rank order; on other ranks the strings are empty.
  // Collective.
  std::vector<std::string> wait_save_all(Stream& stream) const;
  // Restores the state that save() returned on each rank of an earlier job, in rank order. With the same number of
  // ranks all later sums have the bits of a job that never stopped; with another number of ranks no residual is lost.
  // Call it on all ranks. REQUIRES: no sum is in flight. Throws Error if the list is empty, an element is not such a
  // state, or its size or use of momentum differs.
  void restore(std::span<std::string const> of_ranks);

 private:
  struct Impl;
  // step: (stream of the host, gradient on the host), gives what is chosen of it.
  template <class T, class Step>
  void begin_of(Stream& stream, View<T const> gradient, char const* call, Step step);
  template <class T>
  void wait_for(Stream& stream, View<T> sums);
  Owner<Impl> impl_{"a TopKAllreduce"};
};

}  // namespace gpups
