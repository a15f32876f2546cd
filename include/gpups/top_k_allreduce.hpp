// SPDX-License-Identifier: Apache-2.0
// Sums dense gradients over the ranks of a group by their largest elements: top-k SGD with error feedback.
//
// A rank sends about the share `density` of its elements, those that have become largest; all others wait in a residual
// and are added to the next gradient (Alistarh et al., NeurIPS 2018). What is rounded off on the wire, and what the
// algorithm drops on its way, waits likewise, on some rank. All of it are whole units of a grid, so that the sums so
// far and the residuals of all ranks are together the sum of all gradients, to the last bit.
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

// The same on all ranks. Where the number of elements to send, the algorithm, the format or the grid differ in a sum,
// every rank's wait throws PeerError; momentum is not compared.
struct TopKOptions {
  double density = .01;  // share of the elements that a rank sends, above 0 and up to 1
  // Warm-up: the share begins with density_first, `density` to 1, and falls exponentially. Without steps of it
  // density_first has no effect.
  double density_first = .25;
  std::uint64_t warmup_steps = 0;
  // Momentum correction (Deep Gradient Compression, Lin et al., ICLR 2018): what is summed is not the gradient g but
  // the velocity v = momentum * v + g of each rank, which is forgotten where an element is sent. The optimizer then has
  // no momentum of its own. 0 to below 1; 0: off.
  float momentum = 0;
  // One of top_k_algorithms(), or "auto": "sparse_gather" between two ranks, else "resparsified". It never depends on
  // measured times, since what waits, and where, does depend on it.
  std::string algorithm = "auto";
  // Of the values that are sent: kFloat, which sends whole units and rounds nothing, kHalf, kBFloat or kInt8. What a
  // format cuts off, as kHalf does beyond 65,504, waits like what it rounds off.
  NumberFormat format = NumberFormat::kBFloat;
  int grid_log2 = -30;  // a unit is 2^grid_log2, -200 .. 200; gradients are below 2^46 of them
};

// As AllreduceAlgorithm; "resparsified" is SparDL's (Zhao et al., ICDE 2024): also the sum has about `density` of its
// elements, and a rank sends about twice its own, however many ranks there are.
std::span<AllreduceAlgorithm const> top_k_algorithms();

// For one gradient; an object for each layer. Takes 8 bytes for each element, and 4 with momentum, on the host. One sum
// of an object is under way at a time, as many as Group::kAllreducesMax of several.
class TopKAllreduce {
 public:
  // size: elements of the gradient, below 2^32 - 1. Throws Error for options that make no sense.
  TopKAllreduce(Group const& group, std::uint64_t size, TopKOptions const& options);
  // A sum that is under way goes on without it, as other ranks need it, and counts among Group::kAllreducesMax until it
  // has ended; what this rank gave to it, and what was waiting, is lost.
  ~TopKAllreduce();
  TopKAllreduce(TopKAllreduce&&) noexcept;
  TopKAllreduce& operator=(TopKAllreduce&&) noexcept;

  // Begins to sum `gradient`, (size), or what is waiting of those before it, over the ranks. Collective, for any thread
  // but one at a time; otherwise as Group::begin_allreduce(). The elements are chosen by the host: waits for `stream`,
  // and `gradient` is the caller's again on return. Throws Error where the gradient is not finite or too large for the
  // grid; the object is of no use then.
  void begin(Stream& stream, View<float const> gradient);
  // The same for a gradient in units.
  void begin(Stream& stream, View<std::int64_t const> gradient);
  // The same, but where it would throw for the gradient a sum of nothing begins, for which other ranks do not wait in
  // vain, and the first element at fault is returned. Tell all ranks.
  std::optional<std::uint64_t> begin_checked(Stream& stream, View<std::int64_t const> gradient);
  // Blocks until the sum is there, and writes it to `sums`, (size): zero where nobody has sent anything. The same on
  // all ranks. Errors as of Group::wait_allreduce().
  void wait(Stream& stream, View<float> sums);
  void wait(Stream& stream, View<std::int64_t> sums);  // in units

  // The share that the next sum sends.
  double density() const;
  // By which it sums: what "auto" has become.
  AllreduceAlgorithm const& algorithm() const;
  // (size): what waits on this rank, in units, on the host. While no sum is under way.
  View<std::int64_t const> residual() const;

  // What waits on this rank, for a checkpoint. While no sum is under way.
  std::string save() const;
  // What it gives on each rank, on rank 0; on the others the bytes are left out. Collective, like begin().
  std::vector<std::string> wait_save_all(Stream& stream) const;
  // Goes on from what save() gave on each of the ranks of then, in their order: nothing is lost on other numbers of
  // ranks, and with the same number sums have the bits of never having stopped. On all ranks, while no sum is under
  // way. Throws Error for none, for what is none, and for what is of another size or of a momentum that was on or off.
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
