// SPDX-License-Identifier: Apache-2.0
// Compares the encoding of lists as sparse streams, and the summation of streams to an array, with copies that read and
// write as many bytes. Vectors of 16 million floats, with densities for each position encoding.
#include <algorithm>
#include <cstring>
#include <memory>

#include "bench/against/races.hpp"
#include "kernels/runtime/arena.hpp"
#include "kernels/runtime/space.hpp"
#include "kernels/sparse/encode_stream.hpp"
#include "kernels/sparse/sum_streams.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::bench {
namespace {

constexpr std::size_t kSize = std::size_t{16} << 20;

struct List {
  Array<std::uint32_t> indices{Device::host(), 0};
  Array<float> values{Device::host(), 0};
};

List random_list(test::Random& random, double density) {
  std::vector<std::uint32_t> indices;
  for (std::uint32_t i = 0; i < kSize; ++i) {
    if (test::uniform(random) < density) indices.push_back(i);
  }
  List list{{Device::host(), indices.size()}, {Device::host(), indices.size()}};
  for (std::size_t i = 0; i < indices.size(); ++i) {
    list.indices[i] = indices[i];
    list.values[i] = static_cast<float>(test::uniform(random)) + .5F;
  }
  return list;
}

Array<std::uint8_t> encoded(Stream& stream, List const& list) {
  return kernels::encode<float>(stream, {list.indices, list.values, 0, kSize, {}});
}

// Returns a copy by the stream's threads that reads and writes this many bytes in total.
Side copy_of(Stream& stream, std::size_t bytes) {
  auto const from = std::make_shared<Array<std::uint8_t>>(Device::host(), bytes / 2);
  auto const to = std::make_shared<Array<std::uint8_t>>(Device::host(), bytes / 2);
  std::memset(from->data(), 1, from->bytes());
  return {"memcpy", static_cast<double>(bytes), [from, to, &stream] {
            auto const parts = static_cast<std::size_t>(stream.threads());
            kernels::host_exec(stream).arena->blocks(parts, [&](std::size_t part) {
              std::size_t const first = from->size() * part / parts, last = from->size() * (part + 1) / parts;
              std::memcpy(to->data() + first, from->data() + first, last - first);
            });
          }};
}

Race encode_race(Stream& stream, double density) {
  test::Random random(1);
  auto const list = std::make_shared<List>(random_list(random, density));
  std::size_t const bytes = list->indices.bytes() + list->values.bytes() + encoded(stream, *list).size();
  return {"bytes",
          {"encode", static_cast<double>(bytes), [list, &stream] { encoded(stream, *list); }},
          copy_of(stream, bytes)};
}

struct Sum {
  std::vector<Array<std::uint8_t>> bytes;
  std::vector<kernels::StreamView> streams;
  Array<float> into{Device::host(), kSize};
};

Race sum_race(Stream& stream, std::size_t ranks, double density) {
  auto const sum = std::make_shared<Sum>();
  test::Random random(1);
  std::size_t bytes = sum->into.bytes();
  for (std::size_t r = 0; r < ranks; ++r) {
    sum->bytes.push_back(encoded(stream, random_list(random, density)));
    sum->streams.emplace_back(sum->bytes.back());
    bytes += sum->bytes.back().size();
  }
  return {"bytes",
          {"sum", static_cast<double>(bytes),
           [sum, &stream] {
             kernels::sum<float>(stream, kernels::SumToDense<float>{sum->streams, sum->into});
           }},
          copy_of(stream, bytes)};
}

}  // namespace

Race encode_1_race(Stream& stream) { return encode_race(stream, .01); }
Race encode_10_race(Stream& stream) { return encode_race(stream, .1); }
Race encode_30_race(Stream& stream) { return encode_race(stream, .3); }
Race encode_60_race(Stream& stream) { return encode_race(stream, .6); }
Race sum_2_streams_1_race(Stream& stream) { return sum_race(stream, 2, .01); }
Race sum_2_streams_10_race(Stream& stream) { return sum_race(stream, 2, .1); }
Race sum_2_streams_30_race(Stream& stream) { return sum_race(stream, 2, .3); }
Race sum_2_streams_60_race(Stream& stream) { return sum_race(stream, 2, .6); }
Race sum_4_streams_30_race(Stream& stream) { return sum_race(stream, 4, .3); }
Race sum_4_streams_60_race(Stream& stream) { return sum_race(stream, 4, .6); }

}  // namespace gpups::bench
