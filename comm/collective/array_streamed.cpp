// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/array_streamed.hpp"

#include <memory>
#include <utility>

namespace gpups::comm {
namespace {

// This rank's array on the host, and where the sums go there.
struct OnHost {
  StreamTerms<float> terms;
  View<float> sums;
};

Task<OnHost> on_host(Mesh& mesh, DenseSum sum, NumberFormat format) {
  Stream& stream = mesh.stream();
  OnHost here{.terms = {.stream = host_stream(stream),
                        .size = sum.terms.size(),
                        .form = form_of(format),
                        .keep = sum.keep,
                        .array = sum.terms},
              .sums = sum.values};
  if (stream.device().is_host()) co_return here;
  auto const values = std::make_shared<Array<float>>(Device::host(), sum.terms.size());
  copy<float>(stream, *values, sum.terms);
  co_await mesh.caught_up();
  here.terms.keep = values;
  here.terms.array = *values;
  here.sums = *values;
  co_return here;
}

// The sums where the caller has its array.
Task<> give(Mesh& mesh, View<float> into, View<float const> sums) {
  if (into.data() == sums.data()) co_return;
  copy<float>(mesh.stream(), into, sums);
  co_await mesh.caught_up();
}

}  // namespace

// When the sums are written, all that is sent of the terms has been copied into streams.
Task<> sum_array_streamed(Mesh& mesh, DenseSum sum, SumStreams algorithm) {
  OnHost const here = co_await on_host(mesh, sum, sum.format);
  auto total = co_await algorithm(mesh, here.terms);
  total.write(mesh, here.sums);
  co_await give(mesh, sum.values, here.sums);
}

Task<> sum_array_densely(Mesh& mesh, DenseSum sum) {
  OnHost here = co_await on_host(mesh, sum, NumberFormat::kFloat);
  here.terms.array_stays = here.sums.data() != here.terms.array.data();
  DenseOwners const owners{.into = here.sums,
                           .keep = here.terms.keep,
                           .format = wire_format(sum.format),
                           .draws = {.seed = mesh.number_of_run()}};  // of each sum its own
  co_await sum_by_dense_owners(mesh, here.terms, owners);
  co_await give(mesh, sum.values, here.sums);
}

}  // namespace gpups::comm
