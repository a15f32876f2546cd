// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/exchange_streams.hpp"
#include "comm/collective/others.hpp"
#include "kernels/wire/buckets.hpp"
#include "kernels/wire/quantize_buckets.hpp"

namespace gpups::comm {
namespace {

// The sums of a slice as they go over the wire.
std::shared_ptr<Bytes> wire_of(Slice slice, kernels::Format format) {
  return std::make_shared<Bytes>(Device::host(), kernels::bucket_bytes(format, slice.size, kBucket));
}

void unpack(Stream& stream, DenseOwners const& owners, Slice slice, Bytes const& wire) {
  kernels::unpack_buckets(stream, {wire, owners.format, kBucket, owners.into.slice(slice.first, slice.size)});
}

Task<> take_sums(Mesh& mesh, Stream stream, Rank from, DenseOwners owners, Slice slice) {
  auto const wire = wire_of(slice, owners.format);
  co_await mesh.receive_exactly(from, *wire, wire);
  unpack(stream, owners, slice, *wire);
}

// Sums as they are: from the slice of the result to the same place on all ranks.
Task<> share_floats(Mesh& mesh, StreamTotal<float> parts, DenseOwners owners, std::vector<Slice> slices) {
  auto const part = [&](Rank rank) {
    Slice const slice = slices[number(rank)];
    return owners.into.slice(slice.first, slice.size);
  };
  std::vector<Arriving> arriving;
  std::vector<Sending> sent;
  for (Rank const q : others(mesh)) arriving.push_back(mesh.receive_exactly(q, bytes_of(part(q)), owners.keep));
  parts.write(mesh, part(mesh.me()));
  for (Rank const q : others(mesh)) sent.push_back(mesh.send_exactly(q, bytes_of(part(mesh.me())), owners.keep));
  for (auto& sums : arriving) co_await sums;
  for (auto& sums : sent) co_await sums;
}

// Sums in another format; what they lose by it stays here.
Task<> share_coded(Mesh& mesh, StreamTerms<float> terms, StreamTotal<float> parts, DenseOwners owners,
                   std::vector<Slice> slices) {
  Slice const mine = slices[number(mesh.me())];
  std::vector<Task<>> incoming;
  for (Rank const q : others(mesh)) incoming.push_back(take_sums(mesh, terms.stream, q, owners, slices[number(q)]));
  for (auto& task : incoming) task.start();

  Array<float> const sums(Device::host(), mine.size);
  parts.write(mesh, sums);
  auto const wire = wire_of(mine, owners.format);
  bool const rounds_evenly = kernels::is_integer(owners.format);
  kernels::Draws draws = owners.draws;  // a row of its own for each bucket of each slice
  draws.first_row += number(mesh.me()) * (terms.size / kBucket + 1);
  kernels::quantize_buckets(terms.stream,
                            {.values = sums,
                             .residual = part_of(terms.residual, mine),
                             .format = owners.format,
                             .bucket = kBucket,
                             .wire = *wire,
                             .rounding = rounds_evenly ? kernels::Rounding::kStochastic : kernels::Rounding::kNearest,
                             .draws = draws});
  for (Rank const q : others(mesh)) {
    mesh.count_coding(mine.size * sizeof(float), wire->size());
    mesh.send_exactly(q, *wire, wire);
  }
  unpack(terms.stream, owners, mine, *wire);
  co_await all(std::move(incoming));
}

}  // namespace

Task<> sum_by_dense_owners(Mesh& mesh, StreamTerms<float> terms, DenseOwners owners) {
  std::vector<Slice> const slices = slices_of(terms.size, mesh.ranks());
  StreamTotal<float> parts(terms.stream, co_await scatter_streams(mesh, terms));
  if (owners.format == kernels::Format::kFloat && terms.residual.empty()) {
    co_await share_floats(mesh, std::move(parts), owners, slices);
  } else {
    co_await share_coded(mesh, terms, std::move(parts), owners, slices);
  }
}

}  // namespace gpups::comm
