// SPDX-License-Identifier: Apache-2.0
// Cases of kernels for exact sums that are packed into the fewest bytes, and for merging them.
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "kernels/codec/pack_sums.hpp"
#include "kernels/sum/merge_gradients.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::test {
namespace {

using IntegerView = std::vector<std::int64_t>;
using Ids = std::vector<std::uint32_t>;

// Rows that need 0 to 8 bytes, mostly 3 or 4, with some of the largest and smallest integers of each width.
IntegerView rows_of_all_widths(Random& random, std::size_t rows, std::size_t dim) {
  std::size_t const stride = row_stride(dim);
  IntegerView words(rows * stride, 0);
  for (std::size_t i = 0; i < rows; ++i) {
    int const bytes = static_cast<int>(below(random, 3) == 0 ? below(random, 9) : 3 + below(random, 2));
    if (bytes == 0) continue;
    auto const most = static_cast<std::int64_t>(~std::uint64_t{0} >> (65 - 8 * bytes));
    for (std::size_t j = 0; j < dim; ++j) {
      auto const any = static_cast<std::int64_t>(random()) >> (64 - 8 * bytes);
      std::int64_t const chosen[] = {most, -most - 1, 0, any, any, any, any, any};
      words[i * stride + j] = chosen[below(random, 8)];
    }
  }
  return words;
}

int bytes_needed(std::int64_t const* row, std::size_t dim) {
  int bytes = 0;
  for (std::size_t j = 0; j < dim; ++j) {
    for (; bytes < 8; ++bytes) {
      long double const limit = bytes == 0 ? 0.5L : std::ldexp(1.0L, 8 * bytes - 1);
      auto const x = static_cast<long double>(row[j]);
      if (x >= -limit && x < limit) break;
    }
  }
  return bytes;
}

// Returns the packed bytes of rows in the given order.
std::vector<std::uint8_t> written(IntegerView const& words, Ids const& order, std::size_t dim) {
  std::vector<std::uint8_t> bytes((order.size() + 1) / 2, 0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::int64_t const* const row = words.data() + order[i] * row_stride(dim);
    int const width = bytes_needed(row, dim);
    bytes[i / 2] = static_cast<std::uint8_t>(bytes[i / 2] + (i % 2 == 0 ? width : 16 * width));
    for (std::size_t j = 0; j < dim; ++j) {
      for (int b = 0; b < width; ++b) {
        bytes.push_back(static_cast<std::uint8_t>(static_cast<std::uint64_t>(row[j]) >> 8 * b));
      }
    }
  }
  return bytes;
}

Problem pack_sums(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    IntegerView words;
    Ids order;
    Matrix<std::int64_t> sums;
    Array<std::uint32_t> order_there;
    kernels::PackedBytes bytes;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  std::size_t const rows = size.n + size.n / 2 + 1;
  s->words = rows_of_all_widths(random, rows, size.dim);
  s->sums = matrix(stream, s->words, rows, size.dim);
  s->order = distinct_ids(random, size.n, rows);
  s->order_there = to_device(stream, s->order);

  Problem p;
  p.entries = size.n;
  p.bytes = size.n * (8 * size.dim + 4) + written(s->words, s->order, size.dim).size();
  p.run = [s](Stream& on) { s->bytes = kernels::wait_pack_sums(on, {s->sums, s->order_there}); };
  auto const got = [s](Stream& on) { return to_host(on, s->bytes.memory.view().slice(0, s->bytes.size)); };
  p.wrong = [s, got, size](Stream& on) { return differ("bytes", got(on), written(s->words, s->order, size.dim)); };
  p.bits = [got](Stream& on) { return bytes_of(got(on)); };
  return p;
}

Problem add_packed_sums(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    IntegerView words, before;
    Ids slots;
    Array<std::uint8_t> bytes;
    Array<std::uint64_t> starts;
    Array<std::uint32_t> slots_there, bad_row;
    Matrix<std::int64_t> into;
    bool found = false;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  std::size_t const rows = 2 * size.n + 1;
  s->words = rows_of_all_widths(random, size.n, size.dim);
  s->before = rows_of_all_widths(random, rows, size.dim);
  for (auto& word : s->before) word /= 4;
  for (auto& word : s->words) word /= 4;
  Ids all(size.n);
  for (std::uint32_t i = 0; i < size.n; ++i) all[i] = i;
  s->bytes = to_device(stream, written(s->words, all, size.dim));
  s->starts = Array<std::uint64_t>(stream.device(), kernels::packed_blocks(size.n) + 1);
  s->slots = distinct_ids(random, size.n, rows);
  s->slots_there = to_device(stream, s->slots);
  s->into = matrix(stream, s->before, rows, size.dim);
  s->bad_row = to_device(stream, Ids{kernels::kNoRow});

  Problem p;
  p.entries = size.n;
  p.bytes = s->bytes.size() + size.n * (16 * size.dim + 4);
  p.run = [s, size](Stream& on) {
    kernels::PackedRows const from{s->bytes, size.n, size.dim};
    s->found = kernels::wait_find_packed_rows(on, from, s->starts);
    kernels::add_packed_sums(on, {from, s->starts, s->slots_there, s->into, s->bad_row});
  };
  p.wrong = [s, size](Stream& on) -> std::string {
    auto want = s->before;
    std::size_t const stride = row_stride(size.dim);
    for (std::size_t i = 0; i < size.n; ++i) {
      for (std::size_t j = 0; j < size.dim; ++j) want[s->slots[i] * stride + j] += s->words[i * stride + j];
    }
    if (!s->found) return "the rows were not found";
    if (to_host(on, s->bad_row.view())[0] != kernels::kNoRow) return "a row was reported as bad";
    return differ("into", to_host(on, s->into.view().flat()), want);
  };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->into.view().flat())); };
  return p;
}

// One list of plain sums, as of the rank itself, and three lists of packed sums, for about as many rows as a list has.
Problem merge_gradients(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    std::vector<IntegerView> words;
    std::vector<Ids> ids;
    std::vector<Array<std::uint32_t>> ids_there;
    Matrix<std::int64_t> own, sums;
    std::vector<Array<std::uint8_t>> bytes;
    std::vector<Array<std::uint64_t>> starts;
    std::vector<kernels::GradientList> lists;
    kernels::RowStorage<std::uint64_t> marks;
    Array<std::uint32_t> merged, count, bad_row;
    std::uint32_t epoch = 0;
  };
  constexpr std::size_t kLists = 4;
  Random random(seed);
  auto s = std::make_shared<State>();
  std::size_t const n = size.n / kLists, rows_of_table = n + n / 4 + 1, total = kLists * n;
  Ids all(n);
  for (std::uint32_t i = 0; i < n; ++i) all[i] = i;
  std::size_t packed_bytes = 0;
  for (std::size_t l = 0; l < kLists; ++l) {
    s->words.push_back(rows_of_all_widths(random, n, size.dim));
    for (auto& word : s->words[l]) word /= 8;
    s->ids.push_back(distinct_ids(random, n, rows_of_table));
    s->ids_there.push_back(to_device(stream, s->ids[l]));
    s->lists.push_back({.ids = s->ids_there[l]});
    if (l == 0) {
      s->own = matrix(stream, s->words[l], n, size.dim);
      s->lists[l].sums = s->own;
      continue;
    }
    s->bytes.push_back(to_device(stream, written(s->words[l], all, size.dim)));
    packed_bytes += s->bytes.back().size();
    s->starts.emplace_back(stream.device(), kernels::packed_blocks(n) + 1);
    s->lists[l].packed = {s->bytes.back(), n, size.dim};
    s->lists[l].starts = s->starts.back();
    kernels::wait_find_packed_rows(stream, s->lists[l].packed, s->starts.back());
  }
  s->marks = rows(stream, std::vector<std::uint64_t>(rows_of_table, 0), rows_of_table, 1);
  s->merged = Array<std::uint32_t>(stream.device(), total);
  s->sums = Matrix<std::int64_t>(stream.device(), total, size.dim);
  s->count = Array<std::uint32_t>(stream.device(), 1);
  s->bad_row = to_device(stream, Ids{kernels::kNoRow});

  std::set<std::uint32_t> distinct;
  for (auto const& ids : s->ids) distinct.insert(ids.begin(), ids.end());
  Problem p;
  p.entries = total;
  p.bytes = packed_bytes + (n + distinct.size()) * 8 * row_stride(size.dim) + 12 * total;
  p.run = [s, size](Stream& on) {
    kernels::MergeGradients const merge{s->lists,  size.dim, s->marks.ref(), ++s->epoch,
                                        s->merged, s->sums,  s->count,       s->bad_row};
    kernels::merge_gradients(on, {&merge, 1});
  };
  auto const got = [s](Stream& on) {
    std::size_t const count = to_host(on, s->count.view())[0];
    return std::pair(to_host(on, s->merged.view().slice(0, count)), to_host(on, s->sums.view().slice(0, count).flat()));
  };
  p.wrong = [s, got, size](Stream& on) {
    std::size_t const stride = row_stride(size.dim);
    Ids ids;
    IntegerView sums;
    std::map<std::uint32_t, std::size_t> slots;
    for (std::size_t l = 0; l < s->ids.size(); ++l) {
      for (std::size_t i = 0; i < s->ids[l].size(); ++i) {
        auto const [slot, is_new] = slots.emplace(s->ids[l][i], ids.size());
        if (is_new) ids.push_back(s->ids[l][i]);
        sums.resize(ids.size() * stride, 0);
        for (std::size_t j = 0; j < stride; ++j) sums[slot->second * stride + j] += s->words[l][i * stride + j];
      }
    }
    auto const [got_ids, got_sums] = got(on);
    return differ("ids", got_ids, ids) + differ("sums", got_sums, sums) +
           differ("bad_row", to_host(on, s->bad_row.view()), Ids{kernels::kNoRow});
  };
  p.bits = [got](Stream& on) {
    auto const [ids, sums] = got(on);
    return bytes_of(ids) + bytes_of(sums);
  };
  return p;
}

constexpr KernelCase kPackingCases[] = {
    {"pack_sums", pack_sums},
    {"add_packed_sums", add_packed_sums},
    {"merge_gradients", merge_gradients},
};

}  // namespace

std::span<KernelCase const> packing_cases() { return kPackingCases; }

}  // namespace gpups::test
