// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/work_of.hpp"

#include <algorithm>
#include <cmath>

namespace gpups::comm {
namespace {

constexpr double kFloatBytes = 4, kEntryBytes = 8;
constexpr double kBlock = 65536, kBlockBytes = 4;  // of kernels/wire/stream_format.hpp

// A shape in numbers that can be reckoned with.
struct Numbers {
  bool sparse;
  double ranks, others, n, given, value_bytes;
  explicit Numbers(SumShape const& shape)
      : sparse(shape.sparse),
        ranks(shape.ranks),
        others(shape.ranks - 1),
        n(static_cast<double>(shape.elements)),
        given(static_cast<double>(shape.given_most)),
        value_bytes(shape.format == NumberFormat::kFloat    ? 4
                    : shape.format <= NumberFormat::kBFloat ? 2
                                                            : 1) {}
};

// Making an array of a sparse vector.
Work work_of_filling(SumShape const& shape) {
  if (!shape.sparse) return {};
  Numbers const s(shape);
  return {.fresh = kFloatBytes * s.n, .entries = s.given};
}

// Making streams of what is given. All elements of an array are read twice, those that are zero as well; at most, since
// dense owners may read their own slice once.
Work work_of_streams(Numbers const& s) { return {.entries = s.given, .elements = s.sparse ? s.n : 2 * s.n}; }

// Numbers that go in fewer bits than a float are made so by one side, and floats by the other.
Work work_of_coding(SumShape const& shape, double numbers) {
  if (shape.format == NumberFormat::kFloat) return {};
  return shape.format <= NumberFormat::kBFloat ? Work{.halves = numbers} : Work{.codes = numbers};
}

// Adding `added` entries of streams up to what the caller gets.
Work work_of_result(Numbers const& s, double added, double summed) {
  if (!s.sparse) return {.entries = added, .elements = s.n};
  if (summed >= kArrayFrom * s.n) return {.fresh = kFloatBytes * s.n, .entries = added, .elements = s.n};
  return {.fresh = 2 * kEntryBytes * summed, .entries = added + summed, .elements = s.n};
}

}  // namespace

double stream_bytes(double size, double count, double value_bytes) {
  if (count == 0) return 0;
  double const density = count / size;
  double const gaps = count * (1 + 1 / std::expm1(255 * density)), offsets = 2 * count, bitmap = size / 8;
  double const sparse = count * value_bytes + std::min({gaps, offsets, bitmap});
  return std::min(sparse, size * value_bytes) + std::ceil(size / kBlock) * kBlockBytes;
}

Work work_of_direct(SumShape const& shape, double) {
  Numbers const s(shape);
  double const foreign = s.n * s.others / s.ranks;
  Work work{.rounds = 2, .bytes = 2 * kFloatBytes * foreign, .added = foreign};
  return work += work_of_filling(shape);
}

// As a ring does, whose parts follow each other closely.
Work work_of_lane(SumShape const& shape, double summed) { return work_of_direct(shape, summed); }

Work work_of_doubling(SumShape const& shape, double) {
  Numbers const s(shape);
  double const rounds = std::ceil(std::log2(s.ranks));
  Work work{.rounds = rounds,
            .bytes = kFloatBytes * s.n * rounds,
            .fresh = 2 * kFloatBytes * s.n * rounds,
            .added = s.n * rounds};
  return work += work_of_filling(shape);
}

Work work_of_gathering(SumShape const& shape, double summed) {
  Numbers const s(shape);
  double const bytes = stream_bytes(s.n, s.given, s.value_bytes);
  Work work{.rounds = 1, .bytes = s.others * bytes, .fresh = s.ranks * bytes};
  work += work_of_coding(shape, s.given + s.ranks * s.given);
  work += work_of_streams(s);
  return work += work_of_result(s, s.ranks * s.given, summed);
}

// The number of elements grows by the same factor each time.
Work work_of_sparse_doubling(SumShape const& shape, double summed) {
  Numbers const s(shape);
  int const rounds = static_cast<int>(std::ceil(std::log2(s.ranks)));
  double const growth = s.given == 0 ? 1 : std::pow(std::max(summed / s.given, 1.0), 1.0 / rounds);
  Work work{.rounds = static_cast<double>(rounds)};
  work += work_of_streams(s);
  double count = s.given;
  for (int round = 0; round < rounds; ++round) {
    double const bytes = stream_bytes(s.n, count, s.value_bytes);
    work += {.bytes = bytes, .fresh = 2 * bytes};
    work += work_of_coding(shape, 3 * count);  // those that are sent, and those of both that are added
    if (round + 1 < rounds) work += {.entries = 2 * count + growth * count, .elements = s.n};
    if (round + 1 < rounds) count *= growth;
  }
  return work += work_of_result(s, 2 * count, summed);
}

Work work_of_owners(SumShape const& shape, double summed) {
  Numbers const s(shape);
  double const part = stream_bytes(s.n / s.ranks, s.given / s.ranks, s.value_bytes);
  double const sums = stream_bytes(s.n / s.ranks, summed / s.ranks, s.value_bytes);
  Work work{.rounds = 2,
            .bytes = s.others * (part + sums),
            .fresh = s.ranks * (2 * part + sums),
            .entries = s.given + summed / s.ranks,
            .elements = s.n / s.ranks};
  work += work_of_coding(shape, 2 * s.given + summed / s.ranks + summed);
  work += work_of_streams(s);
  return work += work_of_result(s, summed, summed);
}

// Floats go from result to result; other formats are made of sums that lie elsewhere, and unpacked.
Work work_of_dense_owners(SumShape const& shape, double) {
  Numbers const s(shape);
  double const part = stream_bytes(s.n / s.ranks, s.given / s.ranks, kFloatBytes);
  double const sums = s.n / s.ranks * s.value_bytes;
  Work work{.rounds = 2,
            .bytes = s.others * (part + sums),
            .fresh = s.others * 2 * part + (s.sparse ? kFloatBytes * s.n : 0),
            .entries = s.given,
            .elements = s.n / s.ranks};
  work += work_of_streams(s);
  if (shape.format == NumberFormat::kFloat) return work;
  work += work_of_coding(shape, s.n / s.ranks + s.n);
  return work += {.fresh = s.ranks * sums + kFloatBytes * s.n / s.ranks, .added = s.n};
}

}  // namespace gpups::comm
