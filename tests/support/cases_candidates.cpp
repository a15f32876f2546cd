// SPDX-License-Identifier: Apache-2.0
// Cases of queries that are scored with many candidates: the loss with several answers, and the gradients of distances.
#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>

#include "kernels/score/pair_rows.hpp"
#include "kernels/score/query_loss.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::test {
namespace {

using Ids = std::vector<std::uint32_t>;
using kernels::Loss;

constexpr std::size_t kQueries = 17;
constexpr int kLossBefore = 3;

// Scores of queries and all entities. Query i has i % 4 + 1 answers.
struct ScoredQueries {
  ScoredQueries(Stream& stream, Random& random, std::size_t entities)
      : columns(entities),
        stride(row_stride(entities)),
        scores(floats(random, kQueries, entities)),
        scores_there(matrix(stream, scores, kQueries, entities)),
        slopes(stream.device(), kQueries, entities),
        losses_before(to_device(stream, std::vector<std::int64_t>(kQueries, std::int64_t{kLossBefore} << 30))),
        losses(stream.device(), kQueries) {
    for (std::size_t i = 0; i < kQueries; ++i) {
      std::vector<bool> taken(entities);
      for (std::size_t k = 0; k < std::min(i % 4 + 1, entities); ++k) {
        std::size_t answer = below(random, entities);
        while (taken[answer]) answer = (answer + 1) % entities;
        taken[answer] = true;
        answers.push_back(static_cast<std::uint32_t>(answer));
      }
      offsets.push_back(static_cast<std::uint32_t>(answers.size()));
    }
    answers_there = to_device(stream, answers);
    offsets_there = to_device(stream, offsets);
  }

  std::size_t columns, stride;
  std::vector<float> scores;
  Ids answers, offsets{0};
  Matrix<float> scores_there, slopes;
  Array<std::uint32_t> answers_there, offsets_there;
  Array<std::int64_t> losses_before, losses;
};

template <Loss::Kind Kind, int Percent, bool Accumulate = false>
Problem answer_loss(Stream& stream, CaseSize size, std::uint64_t seed) {
  Random random(seed);
  auto const s = std::make_shared<ScoredQueries>(stream, random, std::max<std::size_t>(size.n, 1));
  Problem p;
  p.entries = kQueries * size.n;
  p.bytes = 6 * p.entries * sizeof(float);  // a copy, and two passes
  p.run = [s](Stream& on) {
    copy<std::int64_t>(on, s->losses, s->losses_before.view());
    copy<float>(on, s->slopes.view().flat(), s->scores_there.view().flat());
    kernels::answer_loss(on, {.kind = Kind,
                              .smoothing = Percent * 0.01F,
                              .offsets = s->offsets_there,
                              .answers = s->answers_there,
                              .scores = s->slopes,
                              .losses = s->losses,
                              .accumulate = Accumulate});
  };
  p.wrong = [s](Stream& on) {
    std::vector<double> slopes(s->scores.size(), 0), losses;
    double const smoothing = Percent * 0.01F, n = static_cast<double>(s->columns);
    for (std::size_t i = 0; i < kQueries; ++i) {
      float const* const scores = s->scores.data() + i * s->stride;
      double* const of_query = slopes.data() + i * s->stride;
      double total = 0, loss = 0;
      for (std::size_t j = 0; j < s->columns; ++j) total += std::exp(double{scores[j]});
      auto const first = s->answers.begin() + s->offsets[i], end = s->answers.begin() + s->offsets[i + 1];
      for (std::size_t j = 0; j < s->columns; ++j) {
        double const x = scores[j], label = std::count(first, end, j) > 0 ? 1 : 0;
        double const share = Kind == Loss::Kind::kSoftmax ? label / static_cast<double>(end - first) : label;
        double const target = (1 - smoothing) * share + smoothing / n;
        double const predicted = Kind == Loss::Kind::kSoftmax ? std::exp(x) / total : 1 / (1 + std::exp(-x));
        of_query[j] = predicted - target;
        loss -= Kind == Loss::Kind::kSoftmax
                    ? target * std::log(predicted)
                    : (target * std::log(predicted) + (1 - target) * std::log1p(-predicted)) / n;
      }
      losses.push_back(loss + (Accumulate ? kLossBefore : 0));
    }
    std::vector<float> got, got_losses;
    for (float x : to_host(on, s->slopes.view().flat())) got.push_back(x);
    for (std::size_t i = 0; i < kQueries; ++i) {
      std::fill(got.begin() + static_cast<std::ptrdiff_t>(i * s->stride + s->columns),
                got.begin() + static_cast<std::ptrdiff_t>((i + 1) * s->stride), 0.0F);  // padding has no meaning
    }
    for (std::int64_t loss : to_host(on, s->losses.view())) got_losses.push_back(static_cast<float>(loss) * 0x1p-30F);
    return differ("slopes", got, slopes, 1e-5) + differ("losses", got_losses, losses, 1e-4);
  };
  p.bits = [s](Stream& on) {
    return bytes_of(to_host(on, s->slopes.view().flat())) + bytes_of(to_host(on, s->losses.view()));
  };
  return p;
}

// Rows of numbers, complex or real, on the host and on a device.
struct NumberRows {
  NumberRows(Stream& stream, Random& random, std::size_t count, std::size_t width, bool complex_numbers)
      : is_complex(complex_numbers),
        numbers(width),
        stride(row_stride(columns())),
        host(floats(random, count, columns())),
        there(matrix(stream, host, count, columns())) {}
  std::size_t columns() const { return is_complex ? 2 * numbers : numbers; }
  std::complex<double> at(std::size_t i, std::size_t k) const {
    float const* const row = host.data() + i * stride;
    return is_complex ? std::complex<double>(row[k], row[numbers + k]) : std::complex<double>(row[k]);
  }
  // Adds to number k of a row of sums with the layout of these rows.
  void add(std::vector<double>& sums, std::size_t i, std::size_t k, std::complex<double> x) const {
    sums[i * stride + k] += x.real();
    if (is_complex) sums[i * stride + numbers + k] += x.imag();
  }

  bool is_complex;
  std::size_t numbers, stride;
  std::vector<float> host;
  Matrix<float> there;
};

template <kernels::Algebra A>
Problem distance_gradients(Stream& stream, CaseSize size, std::uint64_t seed) {
  constexpr bool kRotation = A == kernels::Algebra::kRotation, kEuclidean = A == kernels::Algebra::kTranslationL2;
  struct State {
    State(Stream& on, Random& random, CaseSize size)
        : queries(on, random, kQueries, size.dim, kRotation),
          candidates(on, random, size.n, size.dim, kRotation),
          weights(floats(random, kQueries, size.n)),
          weights_there(matrix(on, weights, kQueries, size.n)),
          of_queries(on.device(), kQueries, queries.columns()),
          of_candidates(on.device(), size.n, queries.columns()) {}
    NumberRows queries, candidates;
    std::vector<float> weights;
    Matrix<float> weights_there, of_queries, of_candidates;
  };
  size.n = std::clamp<std::size_t>(size.n, 1, 3000);  // an emulator would need minutes for more
  Random random(seed);
  auto const s = std::make_shared<State>(stream, random, size);
  for (auto* gradients : {&s->of_queries, &s->of_candidates}) {
    memory::fill_bytes(stream, gradients->view().data(), 0xFF, gradients->view().flat().bytes());
  }
  Problem p;
  p.entries = kQueries * size.n;
  p.bytes = (p.entries + 2 * (kQueries + size.n) * s->queries.stride) * sizeof(float);
  p.run = [s](Stream& on) {
    kernels::distance_gradients(on, {.algebra = A,
                                     .queries = s->queries.there,
                                     .candidates = s->candidates.there,
                                     .weights = s->weights_there,
                                     .of_queries = s->of_queries,
                                     .of_candidates = s->of_candidates});
  };
  p.wrong = [s](Stream& on) {
    std::size_t const numbers = s->queries.numbers, candidates = s->of_candidates.rows();
    std::vector<double> of_queries(s->queries.host.size(), 0), of_candidates(s->candidates.host.size(), 0);
    for (std::size_t i = 0; i < kQueries; ++i) {
      for (std::size_t j = 0; j < candidates; ++j) {
        double squared = 0;
        for (std::size_t k = 0; k < numbers; ++k) squared += std::norm(s->queries.at(i, k) - s->candidates.at(j, k));
        double const weight = s->weights[i * row_stride(candidates) + j];
        for (std::size_t k = 0; k < numbers; ++k) {
          std::complex<double> const d = s->queries.at(i, k) - s->candidates.at(j, k);
          double const length = kEuclidean ? std::sqrt(squared) : std::abs(d);
          if (length == 0) continue;
          s->queries.add(of_queries, i, k, -weight / length * d);
          s->candidates.add(of_candidates, j, k, weight / length * d);
        }
      }
    }
    return differ("queries", to_host(on, s->of_queries.view().flat()), of_queries, 1e-3) +
           differ("candidates", to_host(on, s->of_candidates.view().flat()), of_candidates, 1e-3);
  };
  p.bits = [s](Stream& on) {
    return bytes_of(to_host(on, s->of_queries.view().flat())) + bytes_of(to_host(on, s->of_candidates.view().flat()));
  };
  return p;
}

constexpr KernelCase kCandidatesCases[] = {
    {"distance_gradients_l1", distance_gradients<kernels::Algebra::kTranslationL1>},
    {"distance_gradients_l2", distance_gradients<kernels::Algebra::kTranslationL2>},
    {"distance_gradients_rotation", distance_gradients<kernels::Algebra::kRotation>},
    {"answer_loss_softmax", answer_loss<Loss::Kind::kSoftmax, 0>},
    {"answer_loss_logistic", answer_loss<Loss::Kind::kLogistic, 0, true>},
    {"answer_loss_softmax_smoothed", answer_loss<Loss::Kind::kSoftmax, 10>},
    {"answer_loss_logistic_smoothed", answer_loss<Loss::Kind::kLogistic, 10>},
};

}  // namespace

std::span<KernelCase const> candidate_cases() { return kCandidatesCases; }

}  // namespace gpups::test
