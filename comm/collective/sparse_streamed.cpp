// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/sparse_streamed.hpp"

#include "comm/collective/check_elements.hpp"

namespace gpups::comm {
namespace {

// This rank's vector on the host, whose numbers are to go in a format.
Task<StreamTerms<float>> on_host(Mesh& mesh, SparseSum sum, NumberFormat format) {
  Stream& stream = mesh.stream();
  StreamTerms<float> terms{.stream = host_stream(stream),
                           .indices = sum.vector.indices,
                           .values = sum.vector.values,
                           .size = sum.vector.size,
                           .form = form_of(format),
                           .keep = sum.keep};
  if (!stream.device().is_host()) {
    struct Lists {
      Array<std::uint32_t> indices;
      Array<float> values;
    };
    std::size_t const count = sum.vector.indices.size();
    auto const lists = std::make_shared<Lists>(
        Lists{Array<std::uint32_t>(Device::host(), count), Array<float>(Device::host(), count)});
    copy<std::uint32_t>(stream, lists->indices, sum.vector.indices);
    copy<float>(stream, lists->values, sum.vector.values);
    co_await mesh.caught_up();
    terms.indices = lists->indices;
    terms.values = lists->values;
    terms.keep = lists;
  }
  check_end(terms.size, terms.indices);
  co_return terms;
}

// The result where the caller has its vectors.
Task<SumVector> where_given(Mesh& mesh, SumVector sum) {
  Stream& stream = mesh.stream();
  if (stream.device().is_host()) co_return sum;
  SumVector there{.first = sum.first,
                  .size = sum.size,
                  .sparse = sum.sparse,
                  .indices = Array<std::uint32_t>(stream.device(), sum.indices.size()),
                  .values = Array<float>(stream.device(), sum.values.size())};
  copy<std::uint32_t>(stream, there.indices, sum.indices);
  copy<float>(stream, there.values, sum.values);
  co_await mesh.caught_up();
  co_return there;
}

bool are_few(Streams const& streams, std::uint64_t size) {
  std::uint64_t count = 0;
  for (auto const& stream : streams.views()) count += stream.header().count;
  return static_cast<double>(count) < kArrayFrom * static_cast<double>(size);
}

// What a caller gets of the sum: `result` says of which elements.
SumVector with_elements(Mesh& mesh, StreamTotal<float>& total, SumVector result) {
  result.sparse = are_few(total.streams(), result.size);
  if (result.sparse) {
    auto entries = total.entries(mesh);
    result.indices = std::move(entries.indices);
    result.values = std::move(entries.values);
  } else {
    result.values = Array<float>(Device::host(), result.size);
    total.write(mesh, result.values);
  }
  return result;
}

}  // namespace

kernels::ValueForm form_of(NumberFormat format) {
  switch (format) {
    case NumberFormat::kHalf:
      return {kernels::StreamValues::kHalf, 0};
    case NumberFormat::kBFloat:
      return {kernels::StreamValues::kBFloat, 0};
    case NumberFormat::kInt8:
      return {kernels::StreamValues::kInt8, 0};
    default:
      return {kernels::StreamValues::kFloat, 0};
  }
}

Task<SumVector> sum_streamed(Mesh& mesh, SparseSum sum, SumStreams algorithm) {
  StreamTerms<float> const terms = co_await on_host(mesh, sum, sum.format);
  auto total = co_await algorithm(mesh, terms);
  SumVector result = with_elements(mesh, total, {.first = 0, .size = terms.size});
  co_return co_await where_given(mesh, std::move(result));
}

Task<SumVector> sum_streams_densely(Mesh& mesh, SparseSum sum) {
  StreamTerms<float> const terms = co_await on_host(mesh, sum, NumberFormat::kFloat);
  SumVector result{.first = 0, .size = terms.size};
  auto const sums = std::make_shared<Array<float>>(Device::host(), result.size);
  DenseOwners const owners{.into = *sums,
                           .keep = sums,
                           .format = wire_format(sum.format),
                           .draws = {.seed = mesh.number_of_run()}};  // of each sum its own
  co_await sum_by_dense_owners(mesh, terms, owners);
  result.values = std::move(*sums);
  co_return co_await where_given(mesh, std::move(result));
}

Task<SumVector> scatter_streamed(Mesh& mesh, SparseSum sum) {
  StreamTerms<float> const terms = co_await on_host(mesh, sum, sum.format);
  auto total = co_await send_to_owners<float>(mesh, terms);
  auto const& header = total.streams()[0].header();
  SumVector result = with_elements(mesh, total, {.first = header.first, .size = header.size});
  co_return co_await where_given(mesh, std::move(result));
}

}  // namespace gpups::comm
