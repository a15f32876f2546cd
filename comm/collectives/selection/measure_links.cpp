// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <chrono>
#include <cstring>
#include <functional>
#include <vector>

#include "comm/collectives/selection/link_costs.hpp"
#include "comm/collectives/sparse/algorithms.hpp"
#include "kernels/base/hash.hpp"
#include "kernels/codec/quantize_buckets.hpp"
#include "kernels/sparse/encode_stream.hpp"
#include "kernels/sparse/sum_streams.hpp"
#include "kernels/sum/sum_arrays.hpp"

namespace gpups::comm {
namespace {

using WorkCounts = std::function<CoTask<>()>;

constexpr int kRounds = 16;
// Messages grow until their exchange takes so long that neither the latency nor the first burst of a link matters.
constexpr double kExchange_s = 0.006;
constexpr std::size_t kBytesFirst = std::size_t{128} << 10;  // to all other ranks together
constexpr std::size_t kBytesLast = std::size_t{4} << 20;
constexpr std::size_t kElements = std::size_t{1} << 20;  // more than fit into the caches of a core
constexpr std::size_t kApart = 8;                        // one of this many elements of the stream is nonzero
constexpr int kRepeats = 3;                              // the fastest counts; the first one also connects the ranks

// Returns the seconds until all ranks have done the work, as the slowest rank measures them. Ranks that share a core do
// the work one after the other.
CoTask<double> time(Communicator& comm, WorkCounts const& work) {
  double least = 1e9;
  for (int i = 0; i < kRepeats; ++i) {
    co_await allgather_number(comm, 0);
    auto const start = std::chrono::steady_clock::now();
    co_await work();
    co_await allgather_number(comm, 0);
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  double most = 0;
  auto const all = co_await allgather_number(comm, std::bit_cast<std::uint64_t>(least));
  for (std::uint64_t const bits : all) most = std::max(most, std::bit_cast<double>(bits));
  co_return most;
}

// Sends `out` to every other rank and receives as many bytes from each.
CoTask<> exchange(Communicator& comm, std::shared_ptr<Bytes> out) {
  std::vector<Request> arriving;
  std::vector<SendRequest> sending;
  for (Rank const q : other_ranks(comm)) {
    sending.push_back(comm.send_fixed(q, out->view(), out));
    auto const in = std::make_shared<Bytes>(comm.stream().device(), out->size());
    arriving.push_back(comm.receive_fixed(q, in->view(), in));
  }
  for (auto& message : arriving) co_await message;
  for (auto& message : sending) co_await message;
}

CoTask<double> measure_byte(Communicator& comm) {
  auto const ranks = static_cast<std::size_t>(comm.ranks());
  for (std::size_t bytes = kBytesFirst / (ranks - 1);; bytes *= 2) {
    auto const out = std::make_shared<Bytes>(comm.stream().device(), bytes);
    memory::fill_bytes(comm.stream(), out->data(), 1, bytes);
    WorkCounts const work = [&] { return exchange(comm, out); };
    double const exchange_s = co_await time(comm, work);
    double const byte_s = exchange_s / static_cast<double>(bytes * (ranks - 1));
    if (exchange_s >= kExchange_s || bytes >= kBytesLast) co_return byte_s;
  }
}

}  // namespace

CoTask<LinkCosts> measure_links(Communicator& comm) {
  Stream host(Device::host(), comm.stream().threads());
  Array<float> const values(Device::host(), kElements), sums(Device::host(), kElements);
  Bytes const wire(Device::host(), kernels::bucket_bytes(kernels::Format::kInt8, kElements, kBucket));
  std::vector<std::uint32_t> indices;
  for (std::uint32_t i = 0; i < kElements; ++i) {
    values.data()[i] = sums.data()[i] = static_cast<float>(i % 1000);
    if (i % kApart == 0) indices.push_back(i + static_cast<std::uint32_t>(kernels::mix(i) % kApart));
  }
  WorkCounts const add = [&]() -> CoTask<> {
    View<float const> const arrays[] = {sums, values};
    kernels::sum_arrays(host, {.arrays = arrays, .sums = sums});
    host.wait();
    co_return;
  };
  // Encodes a stream and adds it to itself: 4 entries for each nonzero element, and 2 passes over all elements.
  WorkCounts const write_and_add = [&]() -> CoTask<> {
    auto const bytes = kernels::encode<float>(host, {.indices = View<std::uint32_t const>(indices),
                                                     .values = values.view().slice(0, indices.size()),
                                                     .first = 0,
                                                     .size = kElements,
                                                     .form = {}});
    std::vector<kernels::StreamView> const both{kernels::StreamView(bytes.view()), kernels::StreamView(bytes.view())};
    kernels::sum<float>(host, kernels::SumToStream<float>{.streams = both, .form = {}});
    co_return;
  };
  WorkCounts const code_and_decode = [&]() -> CoTask<> {
    kernels::quantize_buckets(host, {.values = values,
                                     .format = kernels::Format::kInt8,
                                     .bucket = kBucket,
                                     .encoded = wire,
                                     .rounding = kernels::Rounding::kStochastic});
    kernels::dequantize_buckets(host, {wire, kernels::Format::kInt8, kBucket, sums});
    host.wait();
    co_return;
  };
  LinkCosts model;
  WorkCounts const rounds = [&]() -> CoTask<> {
    for (int i = 0; i < kRounds; ++i) co_await allgather_number(comm, 0);
  };
  model.round_s = co_await time(comm, rounds) / (kRounds + 1);
  model.byte_s = co_await measure_byte(comm);
  model.add_s = co_await time(comm, add) / kElements;
  model.entry_s = co_await time(comm, write_and_add) / ((4.0 / kApart + 2 * kPassed) * kElements);
  model.code_s = co_await time(comm, code_and_decode) / (2.0 * kElements);
  co_return model;
}

CoTask<std::vector<std::uint64_t>> allgather_number(Communicator& comm, std::uint64_t mine) {
  std::vector<std::uint64_t> numbers(static_cast<std::size_t>(comm.ranks()), mine);
  for (Rank const q : other_ranks(comm)) {
    Bytes bytes(Device::host(), sizeof mine);
    std::memcpy(bytes.data(), &mine, sizeof mine);
    comm.send(q, std::move(bytes));
  }
  for (Rank const q : other_ranks(comm)) {
    Bytes const bytes = co_await comm.receive(q, sizeof mine, Device::host());
    if (bytes.size() != sizeof mine)
      comm.throw_peer_error(q, "sent a message of the wrong size where all ranks exchange one number");
    std::memcpy(&numbers[number(q)], bytes.data(), sizeof mine);
  }
  co_return numbers;
}

}  // namespace gpups::comm
