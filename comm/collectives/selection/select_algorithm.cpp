// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/selection/select_algorithm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "comm/collectives/sparse/sparse_vector_allreduce.hpp"
#include "kernels/base/hash.hpp"

namespace gpups::comm {
namespace {

constexpr std::size_t kTogether = 16;  // elements of a cache line
constexpr std::size_t kPlaces = 128;

std::size_t nonzeros(View<float const> values) {
  std::size_t count = 0;
  for (float const value : values) count += value != 0 ? 1 : 0;
  return count;
}

constexpr double kFloatBytes = 4, kBlock = 65536, kBlockBytes = 4;  // the last two: kernels/sparse/stream_format.hpp
constexpr double kHalf = 0.2;  // cost of converting a number to 16 bits, as a fraction of code_s; measured

// Returns the bytes of a sparse stream that has `count` elements at random positions of a range of `size` elements,
// with `value_bytes` per value.
double stream_bytes(double size, double count, double value_bytes) {
  if (count == 0) return 0;
  double const gaps = count * (1 + 1 / std::expm1(255 * count / size)), offsets = 2 * count, bitmap = size / 8;
  double const sparse = count * value_bytes + std::min({gaps, offsets, bitmap});
  return std::min(sparse, size * value_bytes) + std::ceil(size / kBlock) * kBlockBytes;
}

// A shape as floating-point numbers, and the times that algorithms have in common. Received data is written to new
// memory too, but byte_s includes that.
struct Sum {
  LinkCosts const& c;
  AllreduceShape const& shape;
  double ranks = shape.ranks, others = ranks - 1;
  double n = static_cast<double>(shape.elements), slice = n / ranks;
  double given = static_cast<double>(shape.nonzeros_max);
  double summed =
      n == 0 ? 0 : n * (1 - std::pow(1 - given / n, ranks));  // each rank has its elements at random positions
  bool is_exact = shape.format == WireFormat::kFloat, is_half = !is_exact && shape.format <= WireFormat::kBFloat16;
  double value_bytes = is_exact ? 4 : is_half ? 2 : 1;

  double write(double bytes) const { return c.add_s * bytes / kFloatBytes; }
  double entries(double count, double range) const { return c.entry_s * (count + kPassed * range); }
  // Seconds to convert a sparse vector to an array.
  double filling() const { return shape.sparse ? c.add_s * n + c.entry_s * given : 0; }
  // Seconds to encode the input as streams. The elements of an array are read twice.
  double streams() const { return entries(given, shape.sparse ? n : 2 * n); }
  // Seconds to convert numbers to fewer bits than a float, or back.
  double coding(double numbers) const { return is_exact ? 0 : numbers * c.code_s * (is_half ? kHalf : 1); }
  // Seconds to add `added` entries of streams to the result that the caller gets.
  double result(double added) const {
    if (!shape.sparse) return entries(added, n);
    if (summed >= kDenseFromDensity * n) return entries(added, n) + c.add_s * n;
    return entries(added + summed, n) + 4 * c.add_s * summed;
  }
};

// Times that differ by a smaller factor are equal: processors round the last bits of a power differently, and two
// algorithms may do exactly the same work. The first of equal algorithms is selected.
constexpr double kEqual = 1 + 1e-9;

bool can_sum(Algorithm const& algorithm, WireFormat format, AllreduceShape const& shape) {
  if (!algorithm.is_available(shape.can_allreduce) || !algorithm.has(format)) return false;
  return format == WireFormat::kFloat || (is_as_exact(format, shape.format) && algorithm.has(shape.format));
}

}  // namespace

// Reads one cache line in each of kPlaces equal parts.
std::uint64_t estimate_nonzeros(View<float const> values, std::uint64_t seed) {
  std::size_t const lines = values.size() / kTogether;
  if (lines <= kPlaces) return nonzeros(values);
  std::size_t found = 0;
  for (std::size_t place = 0; place < kPlaces; ++place) {
    std::size_t const line = (place * lines + kernels::mix(seed * kPlaces + place) % lines) / kPlaces;
    found += nonzeros(values.slice(line * kTogether, kTogether));
  }
  double const share = static_cast<double>(found) / (kPlaces * kTogether);
  return static_cast<std::uint64_t>(std::llround(share * static_cast<double>(values.size())));
}

double time_of_reduce_scatter_allgather(LinkCosts const& c, AllreduceShape const& shape) {
  Sum const s{c, shape};
  return 2 * c.round_s + s.others * s.slice * (2 * kFloatBytes * c.byte_s + c.add_s) + s.filling();
}

// The parts of a ring follow each other closely, and are added as they arrive.
double time_of_fabric(LinkCosts const& c, AllreduceShape const& shape) {
  Sum const s{c, shape};
  return 2 * c.round_s + s.others * s.slice * 2 * kFloatBytes * c.byte_s + s.filling();
}

// Each round allocates memory for the received data and for its sums.
double time_of_recursive_doubling(LinkCosts const& c, AllreduceShape const& shape) {
  Sum const s{c, shape};
  return std::ceil(std::log2(s.ranks)) * (c.round_s + s.n * (kFloatBytes * c.byte_s + 3 * c.add_s)) + s.filling();
}

double time_of_sparse_allgather(LinkCosts const& c, AllreduceShape const& shape) {
  Sum const s{c, shape};
  double const bytes = stream_bytes(s.n, s.given, s.value_bytes);
  return c.round_s + c.byte_s * s.others * bytes + s.write(bytes) + s.streams() + s.coding((1 + s.ranks) * s.given) +
         s.result(s.ranks * s.given);
}

// The number of elements grows by the same factor in each round. The elements that are sent are converted, and so are
// those of both ranks that are added.
double time_of_ssar_recursive_doubling(LinkCosts const& c, AllreduceShape const& shape) {
  Sum const s{c, shape};
  double const rounds = std::ceil(std::log2(s.ranks));
  double const growth = s.given == 0 ? 1 : std::pow(std::max(s.summed / s.given, 1.0), 1 / rounds);
  double count = s.given, time = s.streams();
  for (int round = 1; round <= rounds; ++round) {
    double const bytes = stream_bytes(s.n, count, s.value_bytes);
    time += c.round_s + c.byte_s * bytes + s.write(bytes) + s.coding(3 * count);
    if (round == rounds) break;
    time += s.entries((2 + growth) * count, s.n);
    count *= growth;
  }
  return time + s.result(2 * count);
}

double time_of_ssar_split_allgather(LinkCosts const& c, AllreduceShape const& shape) {
  Sum const s{c, shape};
  double const sum = s.summed / s.ranks, part = stream_bytes(s.slice, s.given / s.ranks, s.value_bytes);
  double const sums = stream_bytes(s.slice, sum, s.value_bytes);
  return 2 * c.round_s + c.byte_s * s.others * (part + sums) + s.write(s.ranks * part + sums) + s.streams() +
         s.entries(s.given + sum, s.slice) + s.coding(2 * s.given + sum + s.summed) + s.result(s.summed);
}

// Floats are written directly to the result. For other formats, the sums are computed in other memory, quantized, and
// dequantized into the result.
double time_of_dsar_split_allgather(LinkCosts const& c, AllreduceShape const& shape) {
  Sum const s{c, shape};
  double const part = stream_bytes(s.slice, s.given / s.ranks, kFloatBytes);
  double const time = 2 * c.round_s + c.byte_s * s.others * (part + s.slice * s.value_bytes) + s.streams() +
                      s.entries(s.given, s.slice) + s.write(s.others * part) + (shape.sparse ? c.add_s * s.slice : 0);
  if (s.is_exact) return time;
  return time + s.coding(s.slice + s.n) + s.write(s.n * s.value_bytes) + c.add_s * (s.slice + s.n);
}

std::string name_of(Selection const& selection) {
  std::string const name = selection.algorithm->info.name;
  bool const is_exact = selection.format == WireFormat::kFloat;
  return is_exact ? name : fmt::format("{} as {}", name, name_of(selection.format));
}

std::vector<Selection> candidates(LinkCosts const& costs, AllreduceShape const& shape) {
  std::vector<Selection> found;
  for (Algorithm const& algorithm : algorithms()) {
    for (WireFormat const format : kNumberFormats) {
      if (!can_sum(algorithm, format, shape)) continue;
      AllreduceShape as_sent = shape;
      as_sent.format = format;
      found.push_back({&algorithm, format, algorithm.time(costs, as_sent)});
    }
  }
  return found;
}

Selection select_algorithm(LinkCosts const& costs, AllreduceShape const& shape) {
  auto const all = candidates(costs, shape);
  double least_s = all.front().modelled_s;
  for (Selection const& one : all) least_s = std::min(least_s, one.modelled_s);
  return *std::find_if(all.begin(), all.end(), [&](Selection const& s) { return s.modelled_s <= kEqual * least_s; });
}

}  // namespace gpups::comm
