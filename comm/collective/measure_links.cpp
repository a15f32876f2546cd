// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/measure_links.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "comm/collective/gather_number.hpp"
#include "comm/collective/others.hpp"
#include "comm/collective/stream_sums.hpp"
#include "kernels/sum_arrays.hpp"
#include "kernels/wire/buckets.hpp"
#include "kernels/wire/encode_stream.hpp"
#include "kernels/wire/quantize_buckets.hpp"
#include "kernels/wire/sum_streams.hpp"

namespace gpups::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWarmRounds = 4;  // the first connect the ranks
constexpr int kRounds = 16;
// Messages grow until an exchange of them takes this long: then neither latency nor what a link lets through at first
// counts for much.
constexpr double kExchange_s = 0.006;
constexpr std::size_t kBytesFirst = std::size_t{128} << 10;  // to all others together
constexpr std::size_t kBytesLast = std::size_t{4} << 20;
constexpr std::size_t kAddedElements = std::size_t{1} << 20;  // more than a core's caches hold
constexpr std::size_t kRange = 4 * kernels::kStreamBlock;     // elements
constexpr std::size_t kSparse = 100, kFull = 4;               // one of so many elements of the range is there
constexpr int kRepeats = 3;  // of computations and of the longest exchange, of which the fastest counts

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// The slowest rank's. All ranks leave it at about the same time.
Task<double> slowest(Mesh& mesh, double mine) {
  double most = 0;
  auto const all = co_await gather_number(mesh, std::bit_cast<std::uint64_t>(mine));
  for (std::uint64_t const bits : all) most = std::max(most, std::bit_cast<double>(bits));
  co_return most;
}

Task<double> measure_round(Mesh& mesh) {
  for (int i = 0; i < kWarmRounds; ++i) co_await gather_number(mesh, 0);
  auto const start = Clock::now();
  for (int i = 0; i < kRounds; ++i) co_await gather_number(mesh, 0);
  double const mine = seconds_since(start) / kRounds;
  co_return co_await slowest(mesh, mine);
}

// Sends as many bytes to every other rank, and takes theirs.
Task<double> time_exchange(Mesh& mesh, std::size_t bytes) {
  auto const out = std::make_shared<Bytes>(mesh.stream().device(), bytes);
  memory::fill_bytes(mesh.stream(), out->data(), 1, bytes);
  co_await gather_number(mesh, 0);
  auto const start = Clock::now();
  std::vector<std::shared_ptr<Bytes>> in;
  std::vector<Arriving> arriving;
  std::vector<Sending> sending;
  for (Rank const q : others(mesh)) {
    sending.push_back(mesh.send_exactly(q, out->view(), out));
    in.push_back(std::make_shared<Bytes>(mesh.stream().device(), bytes));
    arriving.push_back(mesh.receive_exactly(q, in.back()->view(), in.back()));
  }
  for (auto& message : arriving) co_await message;
  for (auto& message : sending) co_await message;
  co_return co_await slowest(mesh, seconds_since(start));
}

Task<double> measure_byte(Mesh& mesh) {
  std::size_t bytes = kBytesFirst / (static_cast<std::size_t>(mesh.ranks()) - 1);
  double exchange_s = co_await time_exchange(mesh, bytes);
  while (exchange_s < kExchange_s && bytes < kBytesLast) {
    bytes *= 2;
    exchange_s = co_await time_exchange(mesh, bytes);
  }
  for (int i = 0; i < kRepeats; ++i) exchange_s = std::min(exchange_s, co_await time_exchange(mesh, bytes));
  co_return exchange_s / static_cast<double>(bytes) / (mesh.ranks() - 1);
}

// The fastest of a few times until all ranks have done it: those that share a core do it one after the other.
Task<double> time_work(Mesh& mesh, std::function<void()> work) {
  double least = 1e9;
  for (int i = 0; i < kRepeats; ++i) {
    co_await gather_number(mesh, 0);
    auto const start = Clock::now();
    work();
    co_await gather_number(mesh, 0);
    least = std::min(least, seconds_since(start));
  }
  co_return co_await slowest(mesh, least);
}

Task<double> measure_add(Mesh& mesh, Stream& host) {
  Array<float> const values(Device::host(), kAddedElements), into(Device::host(), kAddedElements);
  memory::fill_bytes(host, values.data(), 0, values.bytes());
  memory::fill_bytes(host, into.data(), 0, into.bytes());
  std::function<void()> const add = [&] {
    View<float const> const arrays[] = {into, values};
    kernels::sum_arrays(host, {.arrays = arrays, .sums = into});
    host.wait();
  };
  double const all_s = co_await time_work(mesh, add);
  co_return all_s / static_cast<double>(kAddedElements);
}

Task<double> measure_fresh(Mesh& mesh, Stream& host) {
  std::function<void()> const get_and_write = [&] {
    Array<float> const values(Device::host(), kAddedElements);
    memory::fill_bytes(host, values.data(), 0, values.bytes());
    host.wait();
  };
  double const all_s = co_await time_work(mesh, get_and_write);
  co_return all_s / static_cast<double>(kAddedElements * sizeof(float));
}

// Writing a stream of every `apart`-th element of the range, and adding it to itself: 4 entries for each.
Task<double> time_streams(Mesh& mesh, Stream& host, std::size_t apart, kernels::StreamValues values_as) {
  std::vector<std::uint32_t> indices;
  for (std::size_t i = 0; i < kRange; i += apart) indices.push_back(static_cast<std::uint32_t>(i));
  std::vector<float> const values(indices.size(), 1);
  std::function<void()> const write_and_add = [&] {
    kernels::ValueForm const form{values_as};
    auto const bytes = kernels::encode<float>(host, {.indices = View<std::uint32_t const>(indices),
                                                     .values = View<float const>(values),
                                                     .first = 0,
                                                     .size = kRange,
                                                     .form = form});
    std::vector<kernels::StreamView> const both{kernels::StreamView(bytes.view()), kernels::StreamView(bytes.view())};
    kernels::sum<float>(host, kernels::SumToStream<float>{.streams = both, .form = form});
  };
  co_return co_await time_work(mesh, write_and_add);
}

// Making codes of all elements of the range, and floats of these.
Task<double> time_codes(Mesh& mesh, Stream& host) {
  constexpr auto kFormat = kernels::Format::kInt8;
  Array<float> const values(Device::host(), kRange);
  Bytes const wire(Device::host(), kernels::bucket_bytes(kFormat, kRange, kBucket));
  for (std::size_t i = 0; i < kRange; ++i) values.data()[i] = static_cast<float>(i % 1000);
  std::function<void()> const there_and_back = [&] {
    kernels::quantize_buckets(host, {.values = values,
                                     .format = kFormat,
                                     .bucket = kBucket,
                                     .wire = wire,
                                     .rounding = kernels::Rounding::kStochastic});
    kernels::unpack_buckets(host, {wire, kFormat, kBucket, values});
    host.wait();
  };
  co_return co_await time_work(mesh, there_and_back);
}

}  // namespace

Task<LinkModel> measure_links(Mesh& mesh) {
  LinkModel model;
  Stream host(Device::host(), mesh.stream().threads());
  model.round_s = co_await measure_round(mesh);
  model.byte_s = co_await measure_byte(mesh);
  model.fresh_s = co_await measure_fresh(mesh, host);
  model.add_s = co_await measure_add(mesh, host);
  double const sparse_s = co_await time_streams(mesh, host, kSparse, kernels::StreamValues::kFloat);
  double const full_s = co_await time_streams(mesh, host, kFull, kernels::StreamValues::kFloat);
  double const halves_s = co_await time_streams(mesh, host, kFull, kernels::StreamValues::kHalf);
  constexpr double kSparseEntries = 4.0 * kRange / kSparse, kFullEntries = 4.0 * kRange / kFull;
  // Each range is passed over twice: by who writes it, and by who adds. Neither part of the time is nothing.
  model.entry_s = std::max(full_s - sparse_s, .1 * full_s) / (kFullEntries - kSparseEntries);
  model.element_s = std::max(sparse_s - kSparseEntries * model.entry_s, .1 * sparse_s) / (2.0 * kRange);
  model.half_s = std::max(halves_s - full_s, .01 * full_s) / kFullEntries;
  model.code_s = co_await time_codes(mesh, host) / (2.0 * kRange);
  co_return model;
}

}  // namespace gpups::comm
