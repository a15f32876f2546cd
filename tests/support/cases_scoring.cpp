// SPDX-License-Identifier: Apache-2.0
// Cases of scoring kernels: errors of ratings, distances of all pairs, and steps of triples whose score is a distance.
#include <complex>
#include <memory>

#include "kernels/factor/rating_errors.hpp"
#include "kernels/score/pair_rows.hpp"
#include "kernels/score/step_triples.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::test {
namespace {

using kernels::Algebra;
using Ids = std::vector<std::uint32_t>;
using Number = std::complex<double>;

Ids random_ids(Random& random, std::size_t n, std::size_t range) {
  Ids ids(n);
  for (auto& id : ids) id = static_cast<std::uint32_t>(below(random, range));
  return ids;
}

// Rounds to few bits, so that sums and differences are exact. Then a difference is 0 in the kernel if and only if it is
// 0 in the oracle.
std::vector<float> coarse(std::vector<float> values) {
  for (float& x : values) x = std::round(x * 128) / 128;
  return values;
}

// Rows on the host and on a device.
struct BothRows {
  BothRows(Stream& stream, Random& random, std::size_t rows, std::size_t columns)
      : dim(columns),
        stride(row_stride(dim)),
        host(coarse(floats(random, rows, dim))),
        there(matrix(stream, host, rows, dim)) {}
  float const* row(std::size_t i) const { return host.data() + i * stride; }

  std::size_t dim, stride;
  std::vector<float> host;
  Matrix<float> there;
};

Problem rating_errors(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    State(Stream& on, Random& random, CaseSize size)
        : rows(on, random, size.n / 8 + 1, size.dim),
          columns(on, random, size.n / 16 + 1, size.dim),
          rows_of(random_ids(random, size.n, size.n / 8 + 1)),
          columns_of(random_ids(random, size.n, size.n / 16 + 1)),
          ratings(size.n) {
      for (float& rating : ratings) rating = static_cast<float>(1 + below(random, 5));
    }
    BothRows rows, columns;
    Ids rows_of, columns_of;
    std::vector<float> ratings;
    Array<std::uint32_t> rows_there, columns_there;
    Array<float> ratings_there, slopes;
    Array<std::int64_t> losses;
  };
  Random random(seed);
  auto s = std::make_shared<State>(stream, random, size);
  s->rows_there = to_device(stream, s->rows_of);
  s->columns_there = to_device(stream, s->columns_of);
  s->ratings_there = to_device(stream, s->ratings);
  s->slopes = to_device(stream, std::vector<float>(size.n, 7));
  s->losses = to_device(stream, std::vector<std::int64_t>(kernels::rating_losses(size.n), 7));

  Problem p;
  p.entries = size.n;
  p.bytes = size.n * (2 * s->rows.stride * sizeof(float) + 16);
  p.run = [s](Stream& on) {
    kernels::rating_errors(on, {.rows = s->rows.there,
                                .columns = s->columns.there,
                                .rows_of = s->rows_there,
                                .columns_of = s->columns_there,
                                .ratings = s->ratings_there,
                                .slopes = s->slopes,
                                .losses = s->losses});
  };
  p.wrong = [s](Stream& on) {
    std::vector<double> slopes, losses(s->losses.size(), 0);
    for (std::size_t i = 0; i < s->ratings.size(); ++i) {
      double error = -double{s->ratings[i]};
      for (std::size_t k = 0; k < s->rows.dim; ++k) {
        error += double{s->rows.row(s->rows_of[i])[k]} * s->columns.row(s->columns_of[i])[k];
      }
      slopes.push_back(2 * error);
      losses[i / kernels::kRatingsTogether] += std::min(error * error, 1024.0);
    }
    std::vector<float> got;
    for (std::int64_t loss : to_host(on, s->losses.view())) got.push_back(static_cast<float>(loss) * 0x1p-30F);
    return differ("slopes", to_host(on, s->slopes.view()), slopes, 1e-4) + differ("losses", got, losses, 1e-4);
  };
  p.bits = [s](Stream& on) {
    return bytes_of(to_host(on, s->slopes.view())) + bytes_of(to_host(on, s->losses.view()));
  };
  return p;
}

Problem split_biases(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    State(Stream& on, Random& random, CaseSize size)
        : rows(on, random, size.n, size.dim), sources(on.device(), size.n, size.dim), biases(on.device(), size.n) {}
    BothRows rows;
    Matrix<float> sources;
    Array<float> biases;
  };
  Random random(seed);
  auto s = std::make_shared<State>(stream, random, size);
  memory::fill_bytes(stream, s->sources.view().data(), 0xFF, s->sources.view().flat().bytes());

  Problem p;
  p.entries = size.n;
  p.bytes = size.n * (2 * s->rows.stride + 1) * sizeof(float);
  p.run = [s](Stream& on) {
    kernels::split_biases(on, {.rows = s->rows.there, .sources = s->sources, .biases = s->biases, .mean = 0.5F});
  };
  p.wrong = [s](Stream& on) {
    std::size_t const last = s->rows.dim - 1;
    std::vector<double> sources(s->rows.host.size(), 0), biases;
    for (std::size_t i = 0; i < s->sources.rows(); ++i) {
      std::copy_n(s->rows.row(i), last, sources.begin() + static_cast<std::ptrdiff_t>(i * s->rows.stride));
      sources[i * s->rows.stride + last] = 1;
      biases.push_back(0.5 + s->rows.row(i)[last]);
    }
    return differ("sources", to_host(on, s->sources.view().flat()), sources, 0) +
           differ("biases", to_host(on, s->biases.view()), biases, 0);
  };
  p.bits = [s](Stream& on) {
    return bytes_of(to_host(on, s->sources.view().flat())) + bytes_of(to_host(on, s->biases.view()));
  };
  return p;
}

// -- distances, in complex numbers; translations use real numbers only --

struct Distance {
  Algebra algebra;

  bool is_rotation() const { return algebra == Algebra::kRotation; }
  std::size_t dim(CaseSize size) const { return is_rotation() ? 2 * size.dim : size.dim; }
  Number at(float const* row, std::size_t k, std::size_t count) const {
    return is_rotation() ? Number(row[k], row[count + k]) : Number(row[k]);
  }
  double of(std::vector<Number> const& differences) const {
    double sum = 0;
    for (Number d : differences) sum += algebra == Algebra::kTranslationL2 ? std::norm(d) : std::abs(d);
    return algebra == Algebra::kTranslationL2 ? std::sqrt(sum) : sum;
  }
};

constexpr double kMargin = 4;

template <Algebra A>
Problem distance_rows(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    BothRows left, right;
    Matrix<float> out;
  };
  static constexpr Distance kDistance{A};
  Random random(seed);
  std::size_t const queries = 17;
  auto const s = std::make_shared<State>(State{{stream, random, queries, kDistance.dim(size)},
                                               {stream, random, size.n, kDistance.dim(size)},
                                               Matrix<float>(stream.device(), queries, size.n)});
  auto const scores = [s](Stream& on) {
    std::vector<float> const padded = to_host(on, s->out.view().flat());
    std::vector<float> all;
    for (std::size_t e = 0; e < padded.size(); ++e) {
      if (e % s->out.stride() < s->out.columns()) all.push_back(padded[e]);
    }
    return all;
  };

  Problem p;
  p.entries = queries * size.n;
  p.bytes = queries * size.n * sizeof(float) + (queries + size.n) * s->left.stride * sizeof(float);
  p.run = [s](Stream& on) {
    kernels::distance_rows(
        on, {.algebra = A, .margin = kMargin, .left = s->left.there, .right = {s->right.there}, .out = s->out});
  };
  p.wrong = [s, scores, size](Stream& on) {
    std::vector<double> want;
    std::vector<Number> apart(size.dim);
    for (std::size_t i = 0; i < queries; ++i) {
      for (std::size_t j = 0; j < size.n; ++j) {
        for (std::size_t k = 0; k < size.dim; ++k) {
          apart[k] = kDistance.at(s->left.row(i), k, size.dim) - kDistance.at(s->right.row(j), k, size.dim);
        }
        want.push_back(kMargin - kDistance.of(apart));
      }
    }
    return differ("scores", scores(on), want, 1e-4);
  };
  p.bits = [scores](Stream& on) { return bytes_of(scores(on)); };
  return p;
}

constexpr std::size_t kNegatives = 6, kEntries = 2 + 2 * kNegatives;

struct DistanceTriples {
  DistanceTriples(Stream& on, Random& random, Distance of, CaseSize size)
      : distance(of),
        count(size.dim),
        entities(on, random, size.n / 2 + 5, distance.dim(size)),
        relations(on, random, 9, size.dim),
        entity_rows(random_ids(random, size.n * kEntries, size.n / 2 + 5)),
        relation_rows(random_ids(random, size.n, 9)),
        entities_there(to_device(on, entity_rows)),
        relations_there(to_device(on, relation_rows)),
        sources(on.device(), size.n * kEntries, distance.dim(size)),
        relation_sources(on.device(), size.n, size.dim),
        coefficients(on.device(), size.n * kEntries),
        losses(on.device(), size.n) {}

  void run(Stream& on) const {
    kernels::step_triples(on, {.algebra = distance.algebra,
                               .margin = kMargin,
                               .loss = {},
                               .regulariser = {},
                               .negatives = kNegatives,
                               .entities = entities.there,
                               .relations = relations.there,
                               .entity_rows = entities_there,
                               .relation_rows = relations_there,
                               .sources = sources,
                               .relation_sources = relation_sources,
                               .coefficients = coefficients,
                               .losses = losses,
                               .source_max_abs = {}});
  }

  // The expected results of one triple: its loss, and its rows of sources and coefficients, without padding.
  struct Want {
    double loss = 0;
    std::vector<std::vector<Number>> sources = std::vector<std::vector<Number>>(kEntries);
    std::vector<std::vector<double>> exactness = std::vector<std::vector<double>>(kEntries);
    std::vector<double> relation, coefficients{1, 1};
  };
  Want want(std::size_t i) const {
    std::uint32_t const* const rows = entity_rows.data() + i * kEntries;
    float const* const relation = relations.row(relation_rows[i]);
    std::vector<Number> turn(count, 1), q(count), p(count), dq(count), dp(count), to_object;
    for (std::size_t k = 0; k < count; ++k) {
      Number const s = distance.at(entities.row(rows[0]), k, count), o = distance.at(entities.row(rows[1]), k, count);
      double const r = relation[k];
      if (distance.is_rotation()) turn[k] = std::polar(1.0, r);
      q[k] = distance.is_rotation() ? s * turn[k] : s + r;
      p[k] = distance.is_rotation() ? o / turn[k] : o - r;
    }
    Want w;
    double slope = 0;
    for (std::size_t e = 1; e < kEntries; ++e) {
      bool const of_object = e < 2 + kNegatives;
      std::vector<Number> apart(count);
      for (std::size_t k = 0; k < count; ++k) {
        apart[k] = (of_object ? q : p)[k] - distance.at(entities.row(rows[e]), k, count);
      }
      double const length = distance.of(apart), sign = e == 1 ? -1 : 1, score = kMargin - length;
      w.loss += std::log1p(std::exp(sign * score));
      double const by_score = sign / (1 + std::exp(-sign * score));
      for (std::size_t k = 0; k < count; ++k) {
        double const scale = distance.algebra == Algebra::kTranslationL2 ? length : std::abs(apart[k]);
        // The error of a direction is the relative error of the difference.
        w.exactness[e].push_back(std::min(1.0, std::abs(apart[k])));
        if (scale > 0) apart[k] /= scale;
        (of_object ? dq : dp)[k] -= by_score * apart[k];
      }
      if (e == 1) {
        slope = by_score;
        to_object = apart;
      } else {
        w.coefficients.push_back(by_score);
        w.sources[e] = apart;
      }
    }
    Number const quarter(0, 1);
    for (std::size_t k = 0; k < count; ++k) {
      w.exactness[0].push_back(1);
      w.exactness[1][k] = 1;
      w.sources[0].push_back(dq[k] / turn[k]);
      w.sources[1].push_back(dp[k] * turn[k] + slope * to_object[k]);
      Number const by_angle = std::conj(dq[k]) * quarter * q[k] - std::conj(dp[k]) * quarter * p[k];
      w.relation.push_back(distance.is_rotation() ? by_angle.real() : (dq[k] - dp[k]).real());
    }
    return w;
  }

  std::string wrong(Stream& on) const {
    auto got = to_host(on, sources.view().flat());
    auto const got_relations = to_host(on, relation_sources.view().flat());
    std::vector<double> want_sources(got.size(), 0), want_relations(got_relations.size(), 0), factors, want_losses;
    for (std::size_t i = 0; i < relation_rows.size(); ++i) {
      Want const w = want(i);
      for (std::size_t e = 0; e < kEntries; ++e) {
        std::size_t const first = (i * kEntries + e) * entities.stride;
        for (std::size_t k = 0; k < count; ++k) {
          double const exactness = w.exactness[e][k];
          want_sources[first + k] = w.sources[e][k].real() * exactness;
          got[first + k] *= static_cast<float>(exactness);
          if (!distance.is_rotation()) continue;
          want_sources[first + count + k] = w.sources[e][k].imag() * exactness;
          got[first + count + k] *= static_cast<float>(exactness);
        }
      }
      std::copy(w.relation.begin(), w.relation.end(), want_relations.begin() + i * relations.stride);
      factors.insert(factors.end(), w.coefficients.begin(), w.coefficients.end());
      want_losses.push_back(w.loss);
    }
    std::vector<float> got_losses;
    for (std::int64_t loss : to_host(on, losses.view())) got_losses.push_back(static_cast<float>(loss) * 0x1p-30F);
    return differ("sources", got, want_sources, 2e-3) + differ("relations", got_relations, want_relations, 2e-3) +
           differ("coefficients", to_host(on, coefficients.view()), factors, 1e-4) +
           differ("losses", got_losses, want_losses, 1e-4);
  }
  std::string bits(Stream& on) const {
    return bytes_of(to_host(on, sources.view().flat())) + bytes_of(to_host(on, relation_sources.view().flat())) +
           bytes_of(to_host(on, coefficients.view())) + bytes_of(to_host(on, losses.view()));
  }

  Distance distance;
  std::size_t count;  // complex or real numbers in a row
  BothRows entities, relations;
  Ids entity_rows, relation_rows;
  Array<std::uint32_t> entities_there, relations_there;
  Matrix<float> sources, relation_sources;
  Array<float> coefficients;
  Array<std::int64_t> losses;
};

template <Algebra A>
Problem step_triples(Stream& stream, CaseSize size, std::uint64_t seed) {
  Random random(seed);
  auto const s = std::make_shared<DistanceTriples const>(stream, random, Distance{A}, size);
  Problem p;
  p.entries = size.n;
  p.bytes = size.n * 2 * (kEntries * s->entities.stride + s->relations.stride) * sizeof(float);
  p.run = [s](Stream& on) { s->run(on); };
  p.wrong = [s](Stream& on) { return s->wrong(on); };
  p.bits = [s](Stream& on) { return s->bits(on); };
  return p;
}

constexpr KernelCase kScoringCases[] = {
    {"rating_errors", rating_errors},
    {"split_biases", split_biases},
    {"distance_rows_l1", distance_rows<Algebra::kTranslationL1>},
    {"distance_rows_l2", distance_rows<Algebra::kTranslationL2>},
    {"distance_rows_rotation", distance_rows<Algebra::kRotation>},
    {"step_transe_l1", step_triples<Algebra::kTranslationL1>},
    {"step_transe_l2", step_triples<Algebra::kTranslationL2>},
    {"step_rotate", step_triples<Algebra::kRotation>},
};

}  // namespace

std::span<KernelCase const> scoring_cases() { return kScoringCases; }

}  // namespace gpups::test
