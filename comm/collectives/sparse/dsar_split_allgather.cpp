// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/sparse/exchange_streams.hpp"
#include "kernels/codec/quantize_buckets.hpp"

namespace gpups::comm {
namespace {

// Returns memory for the sums of a slice in the wire format.
std::shared_ptr<Bytes> wire_buffer(Slice slice, kernels::Format format) {
  return std::make_shared<Bytes>(Device::host(), kernels::bucket_bytes(format, slice.size, kBucket));
}

void unpack(Stream& stream, DsarOutput const& output, Slice slice, Bytes const& wire) {
  kernels::dequantize_buckets(stream, {wire, output.format, kBucket, output.into.slice(slice.first, slice.size)});
}

CoTask<> receive_sums(Communicator& comm, Stream stream, Rank from, DsarOutput output, Slice slice) {
  auto const wire = wire_buffer(slice, output.format);
  co_await comm.receive_fixed(from, *wire, wire);
  unpack(stream, output, slice, *wire);
}

// Gathers sums as floats: sends them from the result and receives them into the result.
CoTask<> allgather_floats(Communicator& comm, StreamSum<float> terms_of_slice, DsarOutput output,
                          std::vector<Slice> slices) {
  auto const part = [&](Rank rank) {
    Slice const slice = slices[number(rank)];
    return output.into.slice(slice.first, slice.size);
  };
  std::vector<Request> arriving;
  std::vector<SendRequest> sent;
  for (Rank const q : other_ranks(comm)) arriving.push_back(comm.receive_fixed(q, bytes_of(part(q)), output.keep));
  terms_of_slice.write(comm, part(comm.me()));
  for (Rank const q : other_ranks(comm)) sent.push_back(comm.send_fixed(q, bytes_of(part(comm.me())), output.keep));
  for (auto& sums : arriving) co_await sums;
  for (auto& sums : sent) co_await sums;
}

// Gathers sums in another format. Rounding errors go to the residual of this rank.
CoTask<> allgather_quantized(Communicator& comm, StreamInput<float> terms, StreamSum<float> terms_of_slice,
                             DsarOutput output, std::vector<Slice> slices) {
  Slice const mine = slices[number(comm.me())];
  std::vector<CoTask<>> incoming;
  for (Rank const q : other_ranks(comm))
    incoming.push_back(receive_sums(comm, terms.stream, q, output, slices[number(q)]));
  for (auto& task : incoming) task.start();

  Array<float> const sums(Device::host(), mine.size);
  terms_of_slice.write(comm, sums);
  auto const wire = wire_buffer(mine, output.format);
  bool const rounds_stochastically = kernels::is_integer(output.format);
  kernels::RoundingKey rounding_key = output.rounding_key;  // each bucket of each slice has another row
  rounding_key.first_row += number(comm.me()) * (terms.size / kBucket + 1);
  kernels::quantize_buckets(
      terms.stream, {.values = sums,
                     .residual = slice_or_empty(terms.residual, mine),
                     .format = output.format,
                     .bucket = kBucket,
                     .encoded = *wire,
                     .rounding = rounds_stochastically ? kernels::Rounding::kStochastic : kernels::Rounding::kNearest,
                     .rounding_key = rounding_key});
  for (Rank const q : other_ranks(comm)) {
    comm.count_compression(mine.size * sizeof(float), wire->size());
    comm.send_fixed(q, *wire, wire);
  }
  unpack(terms.stream, output, mine, *wire);
  co_await all(std::move(incoming));
}

}  // namespace

CoTask<> dsar_split_allgather(Communicator& comm, StreamInput<float> terms, DsarOutput output) {
  std::vector<Slice> const slices = slices_of_ranks(terms.size, comm.ranks());
  StreamSum<float> terms_of_slice(terms.stream, co_await alltoall_streams(comm, terms));
  if (output.format == kernels::Format::kFloat && terms.residual.empty()) {
    co_await allgather_floats(comm, std::move(terms_of_slice), output, slices);
  } else {
    co_await allgather_quantized(comm, terms, std::move(terms_of_slice), output, slices);
  }
}

}  // namespace gpups::comm
