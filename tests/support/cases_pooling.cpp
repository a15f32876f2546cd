// SPDX-License-Identifier: Apache-2.0
// Cases of pooling by key or row number, for tables of all types in one call.
#include <algorithm>
#include <memory>

#include "kernels/index/key_index.hpp"
#include "kernels/pool/pool.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/oracle.hpp"

namespace gpups::test {
namespace {

using kernels::BFloat16;
using kernels::DataType;
using kernels::Half;
using kernels::kNoRow;

// The kind of pooling of one table.
struct PoolingOptions {
  DataType type;
  std::size_t dim;
  bool mean, weighted;
  bool by_key;   // otherwise by row number
  bool singles;  // every entry is a bag
};

struct PooledCase {
  PoolingOptions options;
  std::size_t stride;                    // of stored rows
  std::vector<std::vector<float>> rows;  // as they are stored
  std::vector<Key> keys;                 // of entries; a key below rows.size(), before it is scrambled, has a row
  std::vector<std::uint32_t> ids, offsets{0};
  std::vector<float> weights;
  Initializer initializer;

  kernels::RowStorage<float> floats;
  kernels::RowStorage<Half> halves;
  kernels::RowStorage<BFloat16> bfloats;
  kernels::KeyIndex index;
  Array<Key> keys_there;
  Array<std::uint32_t> ids_there, offsets_there, found;
  Array<float> weights_there;
  Matrix<float> out;

  kernels::PooledTable arguments() const;
  std::string wrong(Stream& stream) const;
};

template <class T>
kernels::RowStorage<T> stored(Stream& stream, PooledCase& c) {
  std::vector<T> values(c.rows.size() * c.stride, kernels::round_to<T>(0));
  for (std::size_t i = 0; i < c.rows.size(); ++i) {
    for (std::size_t j = 0; j < c.options.dim; ++j) {
      values[i * c.stride + j] = kernels::round_to<T>(c.rows[i][j]);
      c.rows[i][j] = kernels::to_float(values[i * c.stride + j]);
    }
  }
  return rows(stream, values, c.rows.size(), c.stride);
}

// Returns offsets of bags with about four entries; some are empty, and a few have hundreds of entries.
std::vector<std::uint32_t> random_offsets(Random& random, std::size_t entries) {
  std::vector<std::uint32_t> offsets{0};
  while (offsets.back() < entries) {
    std::uint64_t const length = below(random, 50) == 0 ? below(random, 400) : below(random, 8);
    offsets.push_back(static_cast<std::uint32_t>(std::min<std::uint64_t>(entries, offsets.back() + length)));
  }
  offsets.push_back(offsets.back());
  return offsets;
}

void make(Stream& stream, PoolingOptions options, std::size_t entries, std::uint64_t seed, PooledCase& c) {
  Random random(seed);
  c.options = options;
  c.stride = kernels::row_stride(options.dim, options.type);
  c.rows.assign(entries / 2 + 1, std::vector<float>(options.dim));
  for (auto& row : c.rows) {
    for (auto& x : row) x = static_cast<float>(uniform(random) * 2 - 1);
  }
  c.floats = options.type == DataType::kFloat ? stored<float>(stream, c) : kernels::RowStorage<float>{};
  c.halves = options.type == DataType::kHalf ? stored<Half>(stream, c) : kernels::RowStorage<Half>{};
  c.bfloats = options.type == DataType::kBFloat16 ? stored<BFloat16>(stream, c) : kernels::RowStorage<BFloat16>{};

  c.index = kernels::KeyIndex(stream.device(), c.rows.size());
  Array<std::uint32_t> all_ids(stream.device(), c.rows.size());
  auto const all_keys = to_device(stream, distinct_keys(c.rows.size()));
  c.index.wait_find_or_insert(stream, all_keys, all_ids);
  c.initializer = {seed % 2 == 0 ? Initializer::Kind::kUniform : Initializer::Kind::kConstant, 0.25F};
  for (std::size_t e = 0; e < entries; ++e) {
    std::size_t const row = below(random, c.rows.size() + c.rows.size() / 4);
    c.keys.push_back(scrambled(row));
    c.ids.push_back(row < c.rows.size() ? static_cast<std::uint32_t>(row) : kNoRow);
    c.weights.push_back(options.weighted ? static_cast<float>(uniform(random) * 4 - 2) : 1);
  }
  if (!options.singles) c.offsets = random_offsets(random, entries);
  while (options.singles && c.offsets.size() <= entries)
    c.offsets.push_back(static_cast<std::uint32_t>(c.offsets.size()));
  c.keys_there = to_device(stream, options.by_key ? c.keys : std::vector<Key>{});
  c.ids_there = to_device(stream, c.ids);
  c.offsets_there = to_device(stream, options.singles ? std::vector<std::uint32_t>{} : c.offsets);
  c.weights_there = to_device(stream, options.weighted ? c.weights : std::vector<float>{});
  c.found = to_device(stream, std::vector<std::uint32_t>(entries, 7));
  std::size_t const bags = c.offsets.size() - 1;
  c.out = matrix(stream, std::vector<float>(bags * row_stride(options.dim), 9), bags, options.dim);
}

kernels::PooledTable PooledCase::arguments() const {
  kernels::PooledTable table{.ids = ids_there,
                             .offsets = offsets_there,
                             .weights = weights_there,
                             .mean = options.mean,
                             .out = out,
                             .found = found,
                             .initializer = initializer,
                             .seed = 11};
  if (options.type == DataType::kFloat) table.rows = floats.const_ref();
  if (options.type == DataType::kHalf) table.rows = halves.const_ref();
  if (options.type == DataType::kBFloat16) table.rows = bfloats.const_ref();
  if (options.by_key) {
    table.index = index.buckets();
    table.keys = keys_there;
  }
  return table;
}

// Returns x rounded to the data type.
double as_stored(double x, DataType type) {
  auto const nearest = static_cast<float>(x);
  if (type == DataType::kHalf) return kernels::to_float(kernels::round_to<Half>(nearest));
  if (type == DataType::kBFloat16) return kernels::to_float(kernels::round_to<BFloat16>(nearest));
  return x;
}

std::string PooledCase::wrong(Stream& stream) const {
  std::size_t const to_stride = row_stride(options.dim);
  std::vector<double> want(out.rows() * to_stride, 0);
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
    double const entries = offsets[b + 1] - offsets[b];
    for (std::size_t j = 0; j < options.dim; ++j) {
      double sum = 0;
      for (auto e = offsets[b]; e < offsets[b + 1]; ++e) {
        double x = 0;
        if (ids[e] != kNoRow) {
          x = rows[ids[e]][j];
        } else if (options.by_key) {
          x = as_stored(initial_value(initializer, 11, keys[e], j), options.type);
        }
        sum += static_cast<double>(weights[e]) * x;
      }
      want[b * to_stride + j] = options.mean && entries > 0 ? sum / entries : sum;
    }
  }
  // A sum of hundreds of floats has an error of some units in the last place of its largest term.
  auto const what = fmt::format("out of dim {}, type {}", options.dim, static_cast<int>(options.type));
  return differ(what.c_str(), to_host(stream, out.view().flat()), want, 1e-4) +
         (options.by_key ? differ("found", to_host(stream, found.view()), ids) : "");
}

Problem pooling(Stream& stream, std::vector<PoolingOptions> const& options, std::size_t n, std::uint64_t seed) {
  auto const all = std::make_shared<std::vector<PooledCase>>(options.size());
  Problem p;
  for (std::size_t t = 0; t < options.size(); ++t) {
    std::size_t const entries = (n + t) / options.size();
    PooledCase& c = (*all)[t];
    make(stream, options[t], entries, seed * 100 + t, c);
    p.entries += entries;
    std::size_t const absent = static_cast<std::size_t>(std::count(c.ids.begin(), c.ids.end(), kNoRow));
    std::size_t const row_bytes = c.stride * (options[t].type == DataType::kFloat ? 4 : 2);
    std::size_t const find_bytes = options[t].by_key ? 76 : 4;  // as in the case find_keys
    p.bytes += entries * find_bytes + (entries - absent) * row_bytes + c.out.view().flat().bytes();
  }
  p.run = [all](Stream& on) {
    std::vector<kernels::PooledTable> tables;
    for (auto const& c : *all) tables.push_back(c.arguments());
    kernels::find_pooled(on, {tables});
  };
  p.wrong = [all](Stream& on) {
    std::string wrong;
    for (auto const& c : *all) wrong += c.wrong(on);
    return wrong;
  };
  p.bits = [all](Stream& on) {
    std::string bits;
    for (auto const& c : *all) bits += bytes_of(to_host(on, c.out.view().flat()));
    return bits;
  };
  return p;
}

// Every type with every kind of pooling and different widths, in one call.
Problem find_pooled(Stream& stream, CaseSize size, std::uint64_t seed) {
  std::vector<PoolingOptions> options;
  for (DataType type : {DataType::kFloat, DataType::kHalf, DataType::kBFloat16}) {
    for (std::size_t dim : {std::size_t{1}, std::size_t{3}, std::size_t{16}, std::size_t{100}, std::size_t{128},
                            std::size_t{1000}, size.dim}) {
      for (unsigned how = 0; how < 4; ++how) {
        std::uint64_t const other = options.size() + seed;
        options.push_back({type, dim, how % 2 == 1, how / 2 == 1, other % 3 != 0, other % 5 == 0});
      }
    }
  }
  return pooling(stream, options, size.n, seed);
}

Problem find_pooled_float(Stream& stream, CaseSize size, std::uint64_t seed) {
  return pooling(stream, {{DataType::kFloat, size.dim, false, false, true, seed % 2 == 1}}, size.n, seed);
}
Problem find_pooled_half(Stream& stream, CaseSize size, std::uint64_t seed) {
  return pooling(stream, {{DataType::kHalf, size.dim, false, false, true, seed % 2 == 1}}, size.n, seed);
}
Problem find_pooled_bfloat16(Stream& stream, CaseSize size, std::uint64_t seed) {
  return pooling(stream, {{DataType::kBFloat16, size.dim, false, false, true, seed % 2 == 1}}, size.n, seed);
}

constexpr KernelCase kPoolingCases[] = {
    {"find_pooled", find_pooled},
    {"find_pooled_float", find_pooled_float},
    {"find_pooled_half", find_pooled_half},
    {"find_pooled_bfloat16", find_pooled_bfloat16},
};

}  // namespace

std::span<KernelCase const> pooling_cases() { return kPoolingCases; }

}  // namespace gpups::test
