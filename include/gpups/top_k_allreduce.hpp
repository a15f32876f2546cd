// SPDX-License-Identifier: Apache-2.0
// Top-k allreduce of a dense gradient with error feedback. Source: Alistarh et al., NeurIPS 2018.
//
//   TopKAllreduce layer(group, weights.size(), {.density = .01});  // one for each layer
//   layer.begin(stream, gradient);  // in every step, on every rank
//   layer.wait(stream, sum);        // the sum over ranks of the sent elements; zero elsewhere
//
// A rank sends about density * size elements, those of largest magnitude. It keeps the others in a residual, which is
// added to its next gradient. Rounding errors of the wire format, and elements that the algorithm drops, are added to a
// residual of one of the ranks too. All numbers are multiples of 2^grid_log2, so the sums so far and the residuals of
// all ranks add up exactly to the sum of all gradients.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpups/allreduce.hpp"
#include "gpups/array.hpp"
#include "gpups/compiler.hpp"
#include "gpups/group.hpp"
#include "gpups/owner.hpp"
#include "gpups/stream.hpp"

namespace gpups {

// Options of a TopKAllreduce, which must be equal on all ranks. If the number of elements to send, the algorithm, the
// format or the grid differs, wait() throws PeerError on every rank. Momentum is not compared.
struct TopKOptions {
  double density = .01;  // fraction of the elements that a rank sends, in (0, 1]
  // Warm-up: in the first `warmup_steps` sums, the fraction falls exponentially from initial_density, in [density, 1],
  // to `density`. If warmup_steps is 0, initial_density is not used.
  double initial_density = .25;
  std::uint64_t warmup_steps = 0;
  // Momentum correction (Deep Gradient Compression, Lin et al., ICLR 2018), in [0, 1); 0: off. Each rank sums the
  // velocity v = momentum * v + g instead of the gradient g, and sets v to 0 for sent elements. Use it with an
  // optimizer without momentum.
  float momentum = 0;
  // A name of top_k_algorithms(), or "auto": "sparse_allgather" for two ranks, else "spardl". "auto" does not depend
  // on link costs, because residuals depend on the algorithm.
  std::string algorithm = "auto";
  // Wire format of values: kFloat (exact), kHalf, kBFloat16 or kInt8. Rounding errors, and the parts of magnitudes
  // above 65,504 that kHalf cannot represent, are added to the residual.
  WireFormat format = WireFormat::kBFloat16;
  int grid_log2 = -30;  // units of 2^grid_log2, -200 .. 200; magnitudes of gradients must be below 2^46 units
};

// Returns the algorithms. "spardl" (SparDL, Zhao et al., ICDE 2024) also sparsifies the sum, so a rank sends about
// twice the number of its own elements, for any number of ranks.
GPUPS_EXPORT std::span<AllreduceAlgorithm const> top_k_algorithms();

// The allreduce of one gradient, for example that of one layer, and its residual. Uses 8 bytes of host memory per
// element, and 4 more with momentum. One sum of an object may be in flight; sums of up to Group::kAllreducesMax objects
// may be in flight together. One thread at a time. Move-only; every call of a moved-from object throws Error.
class GPUPS_EXPORT TopKAllreduce {
 public:
  // size: number of elements of the gradient, below 2^32 - 1. The residual is 0 at first. Does not communicate. Throws
  // Error for invalid options.
  TopKAllreduce(Group const& group, std::uint64_t size, TopKOptions const& options);
  // Does not block. A sum in flight continues, because other ranks need it, and counts towards Group::kAllreducesMax
  // until it is done. Its result and the residual are lost.
  ~TopKAllreduce();
  TopKAllreduce(TopKAllreduce&&) noexcept;
  TopKAllreduce& operator=(TopKAllreduce&&) noexcept;

  // Starts the sum of `gradient`, (size), plus the residual, over all ranks. Blocks until `stream` is done, because the
  // host selects the elements; afterwards `gradient` may change. Throws Error if an element is not finite or too large
  // for the grid; the object must not be used after that. Rules of Group::begin_allreduce(). Collective.
  void begin(Stream& stream, View<float const> gradient);
  // The same for a gradient in units of 2^grid_log2.
  void begin(Stream& stream, View<std::int64_t const> gradient);
  // The same for a gradient that may have invalid elements. If there are any, starts a sum without elements, so that
  // the other ranks do not wait forever, and returns the index of the first one. The caller must then inform all ranks,
  // for example by Store::advance_clock(signal).
  std::optional<std::uint64_t> begin_checked(Stream& stream, View<std::int64_t const> gradient);
  // Blocks until the sum is done, and writes it to `sums`, (size): zero for elements that no rank sent. All ranks get
  // equal bits. Throws the errors of Group::wait_allreduce().
  void wait(Stream& stream, View<float> sums);
  // The same in units of 2^grid_log2.
  void wait(Stream& stream, View<std::int64_t> sums);

  // Returns the fraction of elements that the next sum sends.
  double density() const;
  // Returns the algorithm in use; for "auto", the selected one.
  AllreduceAlgorithm const& algorithm() const;
  // Returns this rank's residual, (size), in units of 2^grid_log2, on the host. Valid until the next begin(). REQUIRES:
  // no sum is in flight.
  View<std::int64_t const> residual() const;

  // Returns this rank's state for a checkpoint. REQUIRES: no sum is in flight.
  std::string save() const;
  // Returns, on rank 0, the states of all ranks in rank order, for example for the blobs of Store::save(); on other
  // ranks, empty strings. Blocks until all ranks have called it. REQUIRES: no sum is in flight. Collective.
  std::vector<std::string> wait_save_all(Stream& stream) const;
  // Restores the states that save() returned on the ranks of an earlier job. of_ranks: all states, in rank order. Call
  // it on all ranks with equal arguments. With the same number of ranks, all later sums have the bits of a job that
  // never stopped; with another number, no residual is lost. Throws Error if the list is empty, if an element is not a
  // state, or if its size or its use of momentum differs. REQUIRES: no sum is in flight.
  void restore(std::span<std::string const> of_ranks);

 private:
  struct Impl;
  // step: (host stream, gradient on the host) -> the selected elements.
  template <class T, class Step>
  void begin_of(Stream& stream, View<T const> gradient, char const* call, Step step);
  template <class T>
  void wait_for(Stream& stream, View<T> sums);
  Owner<Impl> impl_{"a TopKAllreduce"};
};

}  // namespace gpups
