// SPDX-License-Identifier: Apache-2.0
// Cases of kernels for implicit feedback: pairwise ranking, Gramians, and least squares of rows.
#include <algorithm>
#include <memory>

#include "kernels/factor/pairwise_ranking.hpp"
#include "kernels/factor/solve_rows.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::test {
namespace {

using Ids = std::vector<std::uint32_t>;

// Rows on the host and on a device.
struct Factors {
  Factors(Stream& stream, Random& random, std::size_t rows, std::size_t columns)
      : dim(columns),
        stride(row_stride(dim)),
        host(floats(random, rows, dim)),
        there(matrix(stream, host, rows, dim)) {}
  double product(std::size_t i, double const* x) const {
    double sum = 0;
    for (std::size_t k = 0; k < dim; ++k) sum += host[i * stride + k] * x[k];
    return sum;
  }

  std::size_t dim, stride;
  std::vector<float> host;
  Matrix<float> there;
};

// Returns fewer rows if an emulator would need minutes for them, where a row costs dim^2 or more.
CaseSize with_squares(CaseSize size, std::size_t squares_max) {
  return {std::min(size.n, squares_max / (size.dim * size.dim + 64)), size.dim};
}

Ids some_ids(Random& random, std::size_t n, std::size_t range) {
  Ids ids(n);
  for (auto& id : ids) id = static_cast<std::uint32_t>(below(random, range));
  return ids;
}

std::vector<float> losses_of(Stream& stream, View<std::int64_t const> losses) {
  std::vector<float> values;
  for (std::int64_t loss : to_host(stream, losses)) values.push_back(static_cast<float>(loss) * 0x1p-30F);
  return values;
}

template <std::uint32_t Negatives>
Problem pairwise_ranking(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    State(Stream& on, Random& random, CaseSize size)
        : users(on, random, size.n / 8 + 1, size.dim),
          items(on, random, size.n / 4 + 1, size.dim),
          user_rows(some_ids(random, size.n, size.n / 8 + 1)),
          item_rows(some_ids(random, size.n * (1 + Negatives), size.n / 4 + 1)),
          users_there(to_device(on, user_rows)),
          items_there(to_device(on, item_rows)),
          gradients(on.device(), size.n, size.dim),
          users_of_items(to_device(on, Ids(item_rows.size(), 7))),
          slopes(to_device(on, std::vector<float>(item_rows.size(), 7))),
          losses(to_device(on, std::vector<std::int64_t>(size.n, 7))) {
      memory::fill_bytes(on, gradients.view().data(), 0, gradients.view().flat().bytes());
    }
    Factors users, items;
    Ids user_rows, item_rows;
    Array<std::uint32_t> users_there, items_there;
    Matrix<float> gradients;
    Array<std::uint32_t> users_of_items;
    Array<float> slopes;
    Array<std::int64_t> losses;
  };
  Random random(seed);
  auto s = std::make_shared<State>(stream, random, size);
  Problem p;
  p.entries = size.n;
  p.bytes = size.n * ((3 + Negatives) * s->users.stride * sizeof(float) + (1 + Negatives) * 12 + 12);
  p.run = [s](Stream& on) {
    kernels::pairwise_ranking(on, {.users = s->users.there,
                                   .items = s->items.there,
                                   .user_rows = s->users_there,
                                   .item_rows = s->items_there,
                                   .negatives = Negatives,
                                   .user_gradients = s->gradients,
                                   .users_of_items = s->users_of_items,
                                   .slopes = s->slopes,
                                   .losses = s->losses});
  };
  p.wrong = [s](Stream& on) {
    std::size_t const dim = s->users.dim, stride = s->users.stride;
    std::vector<double> gradients(s->user_rows.size() * stride, 0), slopes, losses;
    Ids users_of_items;
    for (std::size_t i = 0; i < s->user_rows.size(); ++i) {
      float const* const user = s->users.host.data() + s->user_rows[i] * stride;
      std::vector<double> const x(user, user + dim);
      auto const row = [&](std::size_t k) { return s->item_rows[i * (1 + Negatives) + k]; };
      double const positive = s->items.product(row(0), x.data());
      double loss = 0, of_positive = 0;
      std::vector<double> mine{0};
      for (std::size_t k = 1; k <= Negatives; ++k) {
        double const difference = s->items.product(row(k), x.data()) - positive;
        loss += std::min(std::log1p(std::exp(-std::abs(difference))) + std::max(difference, 0.0), 1024.0) / Negatives;
        mine.push_back(1 / (1 + std::exp(-difference)) / Negatives);
        of_positive -= mine.back();
      }
      mine[0] = of_positive;
      for (std::size_t k = 0; k <= Negatives; ++k) {
        for (std::size_t j = 0; j < dim; ++j) gradients[i * stride + j] += mine[k] * s->items.host[row(k) * stride + j];
        users_of_items.push_back(s->user_rows[i]);
      }
      slopes.insert(slopes.end(), mine.begin(), mine.end());
      losses.push_back(loss);
    }
    return differ("users of items", to_host(on, s->users_of_items.view()), users_of_items) +
           differ("slopes", to_host(on, s->slopes.view()), slopes, 1e-4) +
           differ("gradients", to_host(on, s->gradients.view().flat()), gradients, 1e-3) +
           differ("losses", losses_of(on, s->losses.view()), losses, 1e-4);
  };
  p.bits = [s](Stream& on) {
    return bytes_of(to_host(on, s->slopes.view())) + bytes_of(to_host(on, s->gradients.view().flat())) +
           bytes_of(to_host(on, s->losses.view()));
  };
  return p;
}

// Returns the sum of the outer products of rows first .. end - 1, (dim, stride).
std::vector<double> gramian_of(Factors const& rows, std::size_t first, std::size_t end) {
  std::vector<double> sums(rows.dim * rows.stride, 0);
  for (std::size_t r = first * rows.stride; r < end * rows.stride; r += rows.stride) {
    for (std::size_t i = 0; i < rows.dim; ++i) {
      for (std::size_t j = 0; j < rows.dim; ++j) {
        sums[i * rows.stride + j] += double{rows.host[r + i]} * rows.host[r + j];
      }
    }
  }
  return sums;
}

Problem gramian(Stream& stream, CaseSize given, std::uint64_t seed) {
  CaseSize const size = with_squares(given, std::size_t{1} << 23);
  struct State {
    State(Stream& on, Random& random, CaseSize size)
        : rows(on, random, size.n, size.dim), out(on.device(), kernels::gramian_blocks(size.n) * size.dim, size.dim) {
      memory::fill_bytes(on, out.view().data(), 0, out.view().flat().bytes());
    }
    Factors rows;
    Matrix<float> out;
  };
  Random random(seed);
  auto s = std::make_shared<State>(stream, random, size);
  Problem p;
  p.entries = size.n;
  p.bytes = size.n * s->rows.stride * sizeof(float);
  p.run = [s](Stream& on) { kernels::gramian(on, {.rows = s->rows.there, .out = s->out}); };
  p.wrong = [s](Stream& on) {
    std::size_t const n = s->rows.host.size() / s->rows.stride;
    std::vector<double> sums;
    for (std::size_t first = 0; first < n; first += kernels::kGramianRows) {
      auto const block = gramian_of(s->rows, first, std::min(first + kernels::kGramianRows, n));
      sums.insert(sums.end(), block.begin(), block.end());
    }
    return differ("sums", to_host(on, s->out.view().flat()), sums, 1e-3);
  };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->out.view().flat())); };
  return p;
}

// The least squares of n rows with 0 to 7 interactions each.
struct LeastSquares {
  static constexpr float kL2 = 0.25F, kUnobserved = 8, kFactor = 4;

  LeastSquares(Stream& on, Random& random, CaseSize size)
      : rows(on, random, size.n, size.dim),
        others(on, random, size.n / 4 + 1, size.dim),
        changes(on.device(), size.n, size.dim),
        scratch(on.device(), kernels::solve_scratch_rows(size.n), size.dim),
        gramian_host(size.dim * row_stride(size.dim)),
        losses(to_device(on, std::vector<std::int64_t>(size.n, 7))) {
    Ids solved(size.n);
    for (std::uint32_t i = 0; i < size.n; ++i) solved[i] = static_cast<std::uint32_t>(size.n) - 1 - i;
    for (std::size_t i = 0; i < size.n; ++i) {
      for (std::uint32_t const id : some_ids(random, below(random, 8), size.n / 4 + 1)) interactions.push_back(id);
      offsets.push_back(static_cast<std::uint32_t>(interactions.size()));
    }
    std::vector<double> const sums = gramian_of(others, 0, size.n / 4 + 1);
    double const weight = kUnobserved / static_cast<double>(size.n / 4 + 1);
    for (std::size_t i = 0; i < sums.size(); ++i) gramian_host[i] = static_cast<float>(weight * sums[i]);
    gramian = matrix(on, gramian_host, size.dim, size.dim);
    solved_there = to_device(on, solved);
    interactions_there = to_device(on, interactions);
    offsets_there = to_device(on, offsets);
    memory::fill_bytes(on, changes.view().data(), 0, changes.view().flat().bytes());
  }

  std::string wrong(Stream& on) const {
    std::size_t const dim = rows.dim, stride = rows.stride;
    std::vector<float> const got = to_host(on, changes.view().flat());
    std::vector<float> residuals, misfits;
    std::vector<double> want_misfits;
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
      std::size_t const count = offsets[i + 1] - offsets[i], row = offsets.size() - 2 - i;
      std::vector<double> x, residual;
      for (std::size_t j = 0; j < dim; ++j) {
        x.push_back(rows.host[row * stride + j] - double{got[i * stride + j]} / kFactor);
        residual.push_back(-kL2 * (static_cast<double>(count) + kUnobserved) * x[j]);
      }
      double loss = 0;
      for (std::size_t j = 0; j < dim; ++j) {
        for (std::size_t k = 0; k < dim; ++k) residual[j] -= double{gramian_host[j * stride + k]} * x[k];
      }
      for (std::uint32_t e = offsets[i]; e < offsets[i + 1]; ++e) {
        double const error = 1 - others.product(interactions[e], x.data());
        loss += error;
        for (std::size_t j = 0; j < dim; ++j) residual[j] += error * others.host[interactions[e] * stride + j];
      }
      for (double const r : residual) residuals.push_back(static_cast<float>(r));
      want_misfits.push_back(count == 0 ? 0 : std::max(loss, 0.0) / static_cast<double>(count));
    }
    return differ("residuals", residuals, std::vector<double>(residuals.size(), 0), 2e-2) +
           differ("losses", losses_of(on, losses.view()), want_misfits, 1e-3);
  }

  Factors rows, others;
  Ids interactions, offsets{0};
  Matrix<float> changes, scratch, gramian;
  std::vector<float> gramian_host;
  Array<std::uint32_t> solved_there, interactions_there, offsets_there;
  Array<std::int64_t> losses;
};

Problem solve_rows(Stream& stream, CaseSize given, std::uint64_t seed) {
  CaseSize const size = with_squares(given, std::size_t{1} << 18);
  Random random(seed);
  auto const s = std::make_shared<LeastSquares const>(stream, random, size);
  Problem p;
  p.entries = size.n;
  p.bytes = (size.n * 2 + s->interactions.size()) * s->rows.stride * sizeof(float);
  p.run = [s](Stream& on) {
    kernels::solve_rows(on, {.rows = s->rows.there,
                             .solved = s->solved_there,
                             .others = s->others.there,
                             .interactions = s->interactions_there,
                             .offsets = s->offsets_there,
                             .gramian = s->gramian,
                             .unobserved = LeastSquares::kUnobserved,
                             .l2 = LeastSquares::kL2,
                             .factor = LeastSquares::kFactor,
                             .changes = s->changes,
                             .scratch = s->scratch,
                             .losses = s->losses});
  };
  p.wrong = [s](Stream& on) { return s->wrong(on); };
  p.bits = [s](Stream& on) {
    return bytes_of(to_host(on, s->changes.view().flat())) + bytes_of(to_host(on, s->losses.view()));
  };
  return p;
}

constexpr KernelCase kRecommendersCases[] = {
    {"pairwise_ranking_1", pairwise_ranking<1>},
    {"pairwise_ranking_3", pairwise_ranking<3>},
    {"gramian", gramian},
    {"solve_rows", solve_rows},
};

}  // namespace

std::span<KernelCase const> recommender_cases() { return kRecommendersCases; }

}  // namespace gpups::test
