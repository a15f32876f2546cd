// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/sparse_streamed.hpp"

namespace gpups::comm {
namespace {

// Sums with more than every fourth element are arrays: a list would take no less memory, and more time.
constexpr std::uint64_t kDenseFrom = 4;

// A vector on the host.
struct OnHost {
  Stream stream;
  SparseView vector;
  std::shared_ptr<void const> keep;
};

Task<OnHost> on_host(Mesh& mesh, SparseSum sum) {
  Stream& stream = mesh.stream();
  if (stream.device().is_host()) co_return OnHost{stream, sum.vector, sum.keep};
  struct Lists {
    Array<std::uint32_t> indices;
    Array<float> values;
  };
  std::size_t const count = sum.vector.indices.size();
  auto const lists =
      std::make_shared<Lists>(Lists{Array<std::uint32_t>(Device::host(), count), Array<float>(Device::host(), count)});
  copy<std::uint32_t>(stream, lists->indices, sum.vector.indices);
  copy<float>(stream, lists->values, sum.vector.values);
  co_await mesh.caught_up();
  co_return OnHost{Stream(Device::host()), {sum.vector.size, lists->indices, lists->values}, lists};
}

template <class T>
Array<T> moved(Mesh& mesh, Array<T> from) {
  Stream& stream = mesh.stream();
  if (stream.device().is_host()) return from;
  Array<T> there(stream.device(), from.size());
  copy<T>(stream, there, from);
  stream.wait();  // before `from` goes
  return there;
}

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

StreamTerms<float> terms_of(OnHost const& given, NumberFormat format) {
  return {.stream = given.stream,
          .indices = given.vector.indices,
          .values = given.vector.values,
          .size = given.vector.size,
          .form = form_of(format),
          .keep = given.keep};
}

bool are_few(Streams const& streams, std::uint64_t size) {
  std::uint64_t count = 0;
  for (auto const& stream : streams.views()) count += stream.header().count;
  return count * kDenseFrom < size;
}

}  // namespace

Task<SumVector> sum_streamed(Mesh& mesh, SparseSum sum, SumStreams algorithm) {
  OnHost const given = co_await on_host(mesh, sum);
  auto total = co_await algorithm(mesh, terms_of(given, sum.format));
  std::uint64_t const size = given.vector.size;
  if (are_few(total.streams(), size)) {
    auto entries = total.entries(mesh);
    co_return SumVector{.first = 0,
                        .size = size,
                        .sparse = true,
                        .indices = moved(mesh, std::move(entries.indices)),
                        .values = moved(mesh, std::move(entries.values))};
  }
  Array<float> values(Device::host(), size);
  total.write(mesh, values);
  co_return SumVector{.first = 0, .size = size, .values = moved(mesh, std::move(values))};
}

Task<SumVector> sum_streams_densely(Mesh& mesh, SparseSum sum) {
  OnHost const given = co_await on_host(mesh, sum);
  Array<float> values(Device::host(), given.vector.size);
  DenseOwners const owners{.into = values, .format = static_cast<kernels::Format>(sum.format)};
  co_await sum_by_dense_owners(mesh, terms_of(given, NumberFormat::kFloat), owners);
  co_return SumVector{.first = 0, .size = given.vector.size, .values = moved(mesh, std::move(values))};
}

Task<SumVector> scatter_streamed(Mesh& mesh, SparseSum sum) {
  OnHost const given = co_await on_host(mesh, sum);
  auto total = co_await send_to_owners<float>(mesh, terms_of(given, sum.format));
  auto const& header = total.streams()[0].header();
  Array<float> values(Device::host(), header.size);
  total.write(mesh, values);
  co_return SumVector{.first = header.first, .size = header.size, .values = moved(mesh, std::move(values))};
}

}  // namespace gpups::comm
