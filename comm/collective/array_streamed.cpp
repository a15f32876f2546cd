// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/array_streamed.hpp"

#include <memory>
#include <utility>

namespace gpups::comm {
namespace {

// An array on the host.
struct OnHost {
  Stream stream;
  DenseSum sum;
};

Task<OnHost> on_host(Mesh& mesh, DenseSum sum) {
  Stream& stream = mesh.stream();
  if (stream.device().is_host()) co_return OnHost{stream, std::move(sum)};
  auto const values = std::make_shared<Array<float>>(Device::host(), sum.terms.size());
  copy<float>(stream, *values, sum.terms);
  co_await mesh.caught_up();
  DenseSum const there{.values = *values, .terms = *values, .keep = values, .format = sum.format};
  co_return OnHost{Stream(Device::host(), stream.threads()), there};
}

// The sums where the caller has its array.
Task<> give(Mesh& mesh, View<float> into, View<float const> sums) {
  if (into.data() == sums.data()) co_return;
  copy<float>(mesh.stream(), into, sums);
  co_await mesh.caught_up();
}

StreamTerms<float> terms_of(OnHost const& given, NumberFormat format) {
  return {.stream = given.stream,
          .size = given.sum.terms.size(),
          .form = form_of(format),
          .keep = given.sum.keep,
          .array = given.sum.terms};
}

}  // namespace

// When the sums are written, all that is sent of the terms has been copied into streams.
Task<> sum_array_streamed(Mesh& mesh, DenseSum sum, SumStreams algorithm) {
  OnHost const given = co_await on_host(mesh, sum);
  auto total = co_await algorithm(mesh, terms_of(given, sum.format));
  total.write(mesh, given.sum.values);
  co_await give(mesh, sum.values, given.sum.values);
}

Task<> sum_array_densely(Mesh& mesh, DenseSum sum) {
  OnHost const given = co_await on_host(mesh, sum);
  DenseOwners const owners{.into = given.sum.values,
                           .keep = given.sum.keep,
                           .format = static_cast<kernels::Format>(sum.format),
                           .draws = {.seed = mesh.number_of_run()}};  // of each sum its own
  co_await sum_by_dense_owners(mesh, terms_of(given, NumberFormat::kFloat), owners);
  co_await give(mesh, sum.values, given.sum.values);
}

}  // namespace gpups::comm
