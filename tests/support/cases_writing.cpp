// SPDX-License-Identifier: Apache-2.0
// Cases of kernels that sum gradients and apply them.
#include <memory>

#include "kernels/rows/row_lifecycle.hpp"
#include "kernels/sum/merge_gradients.hpp"
#include "kernels/sum/sum_gradients.hpp"
#include "kernels/update/update_rows.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/oracle.hpp"

namespace gpups::test {
namespace {

using kernels::kNoRow;
using Ids = std::vector<std::uint32_t>;

// Some rows have many entries. Odd seeds use neither source indices nor coefficients.
Problem sum_gradients(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    CaseSize size;
    int grid_log2 = -30;
    bool plain;
    std::vector<std::vector<std::uint32_t>> entries;
    Ids sources;
    std::vector<float> rows, coefficients;
    Matrix<float> source_rows;
    Array<float> coefficients_there;
    Array<std::uint32_t> sources_there, offsets, order, bad_row;
    Matrix<std::int64_t> sums;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  s->size = size;
  s->plain = seed % 2 == 1;
  std::size_t const count = size.n / 4 + 1, sources = s->plain ? size.n : size.n / 3 + 1;
  Ids positions;
  for (Key key : zipf_keys(random, size.n, count)) {
    positions.push_back(static_cast<std::uint32_t>((number(key) >> 20) % count));
    s->sources.push_back(static_cast<std::uint32_t>(s->plain ? s->sources.size() : below(random, sources)));
    s->coefficients.push_back(s->plain ? 1.0F : static_cast<float>(uniform(random) - 0.5));
  }
  s->entries = entries_of_rows(positions, count);
  s->rows = floats(random, sources, size.dim);
  s->source_rows = matrix(stream, s->rows, sources, size.dim);
  if (!s->plain) {
    s->coefficients_there = to_device(stream, s->coefficients);
    s->sources_there = to_device(stream, s->sources);
  }
  Ids offsets{0}, order;
  for (auto const& entries : s->entries) {
    order.insert(order.end(), entries.begin(), entries.end());
    offsets.push_back(static_cast<std::uint32_t>(order.size()));
  }
  s->offsets = to_device(stream, offsets);
  s->order = to_device(stream, order);
  s->bad_row = to_device(stream, Ids{kNoRow});
  s->sums = Matrix<std::int64_t>(stream.device(), count, size.dim);

  Problem p;
  p.entries = size.n;
  p.bytes = size.n * (row_stride(size.dim) * 4 + 12) + count * row_stride(size.dim) * 8;
  p.run = [s](Stream& on) {
    kernels::sum_gradients(on, {s->offsets, s->order, s->sources_there, s->source_rows, s->coefficients_there,
                                s->grid_log2, s->sums, s->bad_row});
  };
  p.wrong = [s](Stream& on) {
    std::vector<std::int64_t> want;
    std::size_t const stride = row_stride(s->size.dim);
    for (auto const& entries : s->entries) {
      for (std::size_t j = 0; j < stride; ++j) {
        std::vector<Product> products;
        for (auto e : entries) products.push_back({s->coefficients[e], s->rows[s->sources[e] * stride + j]});
        want.push_back(*exact_sum(products, s->grid_log2));
      }
    }
    return differ("sums", to_host(on, s->sums.view().flat()), want) +
           differ("bad_row", to_host(on, s->bad_row.view()), Ids{kNoRow});
  };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->sums.view().flat())); };
  return p;
}

std::vector<std::int64_t> sums(Random& random, std::size_t rows, std::size_t dim) {
  std::vector<std::int64_t> values;
  for (float x : floats(random, rows, dim)) values.push_back(static_cast<std::int64_t>(x * 0x1p33));
  return values;
}

Problem merge_sums(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    std::vector<std::int64_t> want;
    Matrix<std::int64_t> into, from;
    Array<std::uint32_t> slots, bad_row, positions;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  bool const has_positions = seed % 2 == 1;
  std::size_t const count = size.n + size.n / 3, stride = row_stride(size.dim);
  s->want = sums(random, count, size.dim);
  auto const from = sums(random, size.n, size.dim);
  Ids const slots = distinct_ids(random, size.n, count);
  s->into = matrix(stream, s->want, count, size.dim);
  s->from = matrix(stream, from, size.n, size.dim);
  s->slots = to_device(stream, slots);
  s->bad_row = to_device(stream, Ids{kNoRow});
  Ids const positions = has_positions ? distinct_ids(random, size.n, size.n) : Ids{};
  s->positions = to_device(stream, positions);
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t const row = i / stride, sum = has_positions ? positions[row] : row;
    s->want[slots[row] * stride + i % stride] += from[sum * stride + i % stride];
  }

  Problem p;
  p.entries = size.n;
  p.bytes = size.n * stride * 24;
  p.run = [s](Stream& on) { kernels::merge_sums(on, {s->into, s->slots, s->from, s->bad_row, s->positions}); };
  p.wrong = [s](Stream& on) {
    return differ("into", to_host(on, s->into.view().flat()), s->want) +
           differ("bad_row", to_host(on, s->bad_row.view()), Ids{kNoRow});
  };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->into.view().flat())); };
  return p;
}

// Every other seed clips gradients. Every third has rows that wait for admission; some of them are not admitted.
Problem update_rows(Stream& stream, CaseSize size, std::uint64_t seed, Optimizer::Kind kind) {
  struct State {
    CaseSize size;
    std::size_t count, columns;
    Optimizer optimizer;
    double const scale = 1.0 / 60;
    float const rate = 0.3F;
    std::uint32_t const step = 41;
    std::uint32_t admission_count;
    Ids ids, lifecycle;
    std::vector<float> values, state;
    std::vector<std::int64_t> sums;
    Array<std::uint32_t> ids_there, bad_row;
    Matrix<std::int64_t> sums_there;
    kernels::RowStorage<float> values_there, state_there;
    kernels::RowStorage<std::uint32_t> life_there;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  s->size = size;
  s->count = size.n + size.n / 2;
  s->optimizer.kind = kind;
  s->optimizer.clip_norm = seed % 2 == 0 ? 0.1F : 0.0F;
  s->optimizer.l2 = seed % 5 == 0 ? 0.03F : 0.0F;
  s->optimizer.l1 = 0.01F;
  s->columns = kernels::state_columns(s->optimizer, size.dim);
  s->ids = distinct_ids(random, size.n, s->count);
  s->values = floats(random, s->count, size.dim);
  s->admission_count = seed % 3 == 0 ? 3 : 1;
  for (std::size_t i = 0; i < s->count; ++i) {
    bool const waits = s->admission_count > 1 && below(random, 2) == 0;
    auto const lifecycle = static_cast<std::uint32_t>(below(random, 4)) + (waits ? 0x80000001 : 0);
    s->lifecycle.insert(s->lifecycle.end(), {lifecycle, 7});
  }
  for (std::size_t i = 0; i < s->count * s->columns; ++i) {
    bool const padding = s->columns > 1 && i % row_stride(size.dim) >= size.dim;
    s->state.push_back(padding ? 0.0F : static_cast<float>(uniform(random)));
  }
  s->sums = sums(random, size.n, size.dim);
  s->ids_there = to_device(stream, s->ids);
  s->bad_row = to_device(stream, Ids{kNoRow});
  s->sums_there = matrix(stream, s->sums, size.n, size.dim);
  s->values_there = rows(stream, s->values, s->count, row_stride(size.dim));
  s->state_there = rows(stream, s->state, s->count, s->columns);
  s->life_there = rows(stream, s->lifecycle, s->count, kernels::kLifecycleWords);

  Problem p;
  p.entries = size.n;
  p.bytes = size.n * (row_stride(size.dim) * 16 + s->columns * 8);
  p.run = [s](Stream& on) {
    kernels::update_rows(
        on, {s->ids_there, s->sums_there, s->values_there.ref(), s->state_there.ref(), s->life_there.ref(), s->size.dim,
             -30, s->scale, s->optimizer, s->rate, s->step, s->admission_count, s->bad_row});
  };
  p.wrong = [s](Stream& on) {
    std::size_t const stride = row_stride(s->size.dim);
    std::vector<double> values(s->values.begin(), s->values.end()), state(s->state.begin(), s->state.end());
    Ids lifecycle = s->lifecycle;
    for (std::size_t i = 0; i < s->ids.size(); ++i) {
      std::size_t const id = s->ids[i];
      auto& words = lifecycle[2 * id];
      bool const waits = words > 0x80000000;
      bool const updated = s->admission_count == 1 || (waits ? words - 0x80000000 >= s->admission_count : words != 0);
      if (!updated) continue;
      words = waits || words == 0 ? 2 : words + 1;
      lifecycle[2 * id + 1] = s->step;
      std::vector<double> gradient;
      for (std::size_t j = 0; j < s->size.dim; ++j) {
        gradient.push_back(static_cast<double>(s->sums[i * stride + j]) * 0x1p-30 * s->scale);
      }
      RowState row{{&values[id * stride], &values[id * stride] + s->size.dim}, {}, static_cast<int>(words) - 2};
      row.state.assign(state.begin() + static_cast<std::ptrdiff_t>(id * s->columns),
                       state.begin() + static_cast<std::ptrdiff_t>((id + 1) * s->columns));
      optimizer_step(s->optimizer, s->rate, gradient, row);
      std::copy(row.value.begin(), row.value.end(), values.begin() + static_cast<std::ptrdiff_t>(id * stride));
      std::copy(row.state.begin(), row.state.end(), state.begin() + static_cast<std::ptrdiff_t>(id * s->columns));
    }
    return differ("values", to_host(on, s->values_there.ref(), s->count), values, 1e-5) +
           differ("state", to_host(on, s->state_there.ref(), s->count), state, 1e-5) +
           differ("lifecycle", to_host(on, s->life_there.ref(), s->count), lifecycle) +
           differ("bad_row", to_host(on, s->bad_row.view()), Ids{kNoRow});
  };
  p.bits = [s](Stream& on) {
    return bytes_of(to_host(on, s->values_there.ref(), s->count)) +
           bytes_of(to_host(on, s->state_there.ref(), s->count));
  };
  return p;
}
Problem update_sgd(Stream& stream, CaseSize size, std::uint64_t seed) {
  return update_rows(stream, size, seed, Optimizer::Kind::kSgd);
}
Problem update_adagrad(Stream& stream, CaseSize size, std::uint64_t seed) {
  return update_rows(stream, size, seed, Optimizer::Kind::kAdagrad);
}
Problem update_rowwise(Stream& stream, CaseSize size, std::uint64_t seed) {
  return update_rows(stream, size, seed, Optimizer::Kind::kRowwiseAdagrad);
}
Problem update_adam(Stream& stream, CaseSize size, std::uint64_t seed) {
  return update_rows(stream, size, seed, Optimizer::Kind::kAdam);
}
Problem update_lamb(Stream& stream, CaseSize size, std::uint64_t seed) {
  return update_rows(stream, size, seed, Optimizer::Kind::kLamb);
}
Problem update_ftrl(Stream& stream, CaseSize size, std::uint64_t seed) {
  return update_rows(stream, size, seed, Optimizer::Kind::kFtrl);
}

constexpr KernelCase kWritingCases[] = {
    {"sum_gradients", sum_gradients},   {"merge_sums", merge_sums},         {"update_sgd", update_sgd},
    {"update_adagrad", update_adagrad}, {"update_rowwise", update_rowwise}, {"update_adam", update_adam},
    {"update_lamb", update_lamb},       {"update_ftrl", update_ftrl},
};

}  // namespace

std::span<KernelCase const> writing_cases() { return kWritingCases; }

}  // namespace gpups::test
