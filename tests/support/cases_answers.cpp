// SPDX-License-Identifier: Apache-2.0
// Cases of the loss of queries with several answers.
#include <algorithm>
#include <cmath>
#include <memory>

#include "kernels/score/answer_loss.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::test {
namespace {

using Ids = std::vector<std::uint32_t>;
using kernels::Loss;

constexpr std::size_t kQueries = 17;

// Scores of queries and all entities. Query i has i % 4 + 1 answers.
struct ScoredQueries {
  ScoredQueries(Stream& stream, Random& random, std::size_t entities)
      : columns(entities),
        stride(row_stride(entities)),
        scores(floats(random, kQueries, entities)),
        scores_there(matrix(stream, scores, kQueries, entities)),
        slopes(stream.device(), kQueries, entities),
        losses(to_device(stream, std::vector<std::int64_t>(kQueries, 1 << 20))) {
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
  Array<std::int64_t> losses;
};

template <Loss::Kind Kind, int Percent>
Problem answer_loss(Stream& stream, CaseSize size, std::uint64_t seed) {
  Random random(seed);
  auto const s = std::make_shared<ScoredQueries>(stream, random, std::max<std::size_t>(size.n, 1));
  Problem p;
  p.entries = kQueries * size.n;
  p.bytes = 6 * p.entries * sizeof(float);  // a copy, and two passes
  p.run = [s](Stream& on) {
    copy<float>(on, s->slopes.view().flat(), s->scores_there.view().flat());
    kernels::answer_loss(on, {.kind = Kind,
                              .smoothing = Percent * 0.01F,
                              .offsets = s->offsets_there,
                              .answers = s->answers_there,
                              .scores = s->slopes,
                              .losses = s->losses});
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
      losses.push_back(loss);
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

constexpr KernelCase kCases[] = {
    {"answer_loss_softmax", answer_loss<Loss::Kind::kSoftmax, 0>},
    {"answer_loss_logistic", answer_loss<Loss::Kind::kLogistic, 0>},
    {"answer_loss_smoothed", answer_loss<Loss::Kind::kSoftmax, 10>},
};

}  // namespace

std::span<KernelCase const> answer_cases() { return kCases; }

}  // namespace gpups::test
