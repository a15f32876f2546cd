// SPDX-License-Identifier: Apache-2.0
// Cases of kernels for dense layers. Separate tests compare their gradients with finite differences.
#include <memory>

#include "kernels/dense/dropout.hpp"
#include "kernels/dense/interact_pairs.hpp"
#include "kernels/dense/linear.hpp"
#include "kernels/dense/sum_parts.hpp"
#include "tests/support/cases.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/dense_oracle.hpp"
#include "tests/support/inputs.hpp"

namespace gpups::test {
namespace {

using kernels::kNoRow;

Matrix<float> on_device(Stream& stream, Matrix<float> const& from) {
  Matrix<float> to(stream.device(), from.rows(), from.columns());
  copy<float>(stream, to.view().flat(), from.view().flat());
  stream.wait();
  return to;
}

// Returns the elements without padding.
std::vector<float> elements(Stream& stream, MatrixView<float const> from) {
  auto const flat = to_host(stream, from.flat());
  std::vector<float> to;
  for (std::size_t i = 0; i < from.rows(); ++i) {
    to.insert(to.end(), &flat[i * from.stride()], &flat[i * from.stride()] + from.columns());
  }
  return to;
}

// A square layer of `dim` inputs with a ReLU, and with a bias except for some seeds.
struct Layer {
  Matrix<float> in, weights, bias, out_gradient;  // on the host
  Matrix<float> in_there, weights_there, bias_there, out_there, out_gradient_there, by_in, by_weights;
  Array<float> by_bias;
};

std::shared_ptr<Layer> layer(Stream& stream, CaseSize size, std::uint64_t seed) {
  Random random(seed);
  auto s = std::make_shared<Layer>();
  s->in = random_dense(random, size.n, size.dim);
  s->weights = random_dense(random, size.dim, size.dim);
  s->bias = random_dense(random, seed % 3 == 0 ? 0 : 1, size.dim);
  s->out_gradient = random_dense(random, size.n, size.dim);
  s->in_there = on_device(stream, s->in);
  s->weights_there = on_device(stream, s->weights);
  s->bias_there = on_device(stream, s->bias);
  s->out_gradient_there = on_device(stream, s->out_gradient);
  s->out_there = Matrix<float>(stream.device(), size.n, size.dim);
  s->by_in = Matrix<float>(stream.device(), size.n, size.dim);
  s->by_weights = Matrix<float>(stream.device(), size.dim, size.dim);
  s->by_bias = Array<float>(stream.device(), size.dim);
  return s;
}

void run_forward(Stream& on, Layer const& s) {
  View<float const> const bias(s.bias_there.view().data(), s.bias.rows() * s.bias.columns(), on.device());
  kernels::linear_forward(on, {s.in_there, s.weights_there, bias, true, s.out_there});
}

Problem linear_forward(Stream& stream, CaseSize size, std::uint64_t seed) {
  auto const s = layer(stream, size, seed);
  Problem p;
  p.entries = size.n;
  p.bytes = (2 * size.n + size.dim) * size.dim * sizeof(float);
  p.run = [s](Stream& on) { run_forward(on, *s); };
  p.wrong = [s](Stream& on) {
    Dense const want = linear_oracle(Dense(s->in), Dense(s->weights), Dense(s->bias), true);
    return differ("out", elements(on, s->out_there), want.values, 1e-4);
  };
  p.bits = [s](Stream& on) { return bytes_of(elements(on, s->out_there)); };
  return p;
}

Problem linear_backward(Stream& stream, CaseSize size, std::uint64_t seed) {
  auto const s = layer(stream, size, seed);
  run_forward(stream, *s);
  Problem p;
  p.entries = size.n;
  p.bytes = (4 * size.n + 2 * size.dim) * size.dim * sizeof(float);
  p.run = [s](Stream& on) {
    kernels::linear_backward(on, {s->in_there, s->weights_there, s->out_there, true, s->out_gradient_there, s->by_in,
                                  false, s->by_weights, s->by_bias});
  };
  p.wrong = [s](Stream& on) {
    auto const out = elements(on, s->out_there);
    std::size_t const dim = s->weights.rows();
    Dense gradient(s->out_gradient), by_in(s->in.rows(), dim), by_weights(dim, dim), by_bias(1, dim);
    for (std::size_t e = 0; e < out.size(); ++e) gradient.values[e] *= out[e] > 0 ? 1 : 0;
    for (std::size_t i = 0; i < s->in.rows(); ++i) {
      for (std::size_t o = 0; o < dim; ++o) {
        by_bias.values[o] += gradient.at(i, o);
        for (std::size_t k = 0; k < dim && gradient.at(i, o) != 0; ++k) {
          by_in.at(i, k) += gradient.at(i, o) * s->weights.row(o)[k];
          by_weights.at(o, k) += gradient.at(i, o) * s->in.row(i)[k];
        }
      }
    }
    // Rounding errors of a sum of n numbers grow with the square root of n.
    double const error = 1e-4 * std::sqrt(1 + static_cast<double>(s->in.rows()) / 1000);
    return differ("in_gradient", elements(on, s->by_in), by_in.values, 1e-4) +
           differ("weights_gradient", elements(on, s->by_weights), by_weights.values, error) +
           differ("bias_gradient", to_host(on, s->by_bias.view()), by_bias.values, error);
  };
  p.bits = [s](Stream& on) {
    return bytes_of(elements(on, s->by_in)) + bytes_of(elements(on, s->by_weights)) +
           bytes_of(to_host(on, s->by_bias.view()));
  };
  return p;
}

// The number of vectors in DLRM.
constexpr std::size_t kSlots = 27;

struct Pairs {
  std::size_t dim;
  Matrix<float> rows, out_gradient;  // on the host
  Matrix<float> rows_there, out_gradient_there, result;
};

std::shared_ptr<Pairs> pairs(Stream& stream, CaseSize size, std::uint64_t seed) {
  Random random(seed);
  auto s = std::make_shared<Pairs>();
  std::size_t const m = (size.n + kSlots - 1) / kSlots;
  s->dim = size.dim;
  s->rows = random_vectors(random, m, kSlots, size.dim);
  s->out_gradient = random_dense(random, m, kernels::interact_pairs_columns(kSlots, size.dim));
  s->rows_there = on_device(stream, s->rows);
  s->out_gradient_there = on_device(stream, s->out_gradient);
  return s;
}

Problem interact_pairs(Stream& stream, CaseSize size, std::uint64_t seed) {
  auto const s = pairs(stream, size, seed);
  s->result = Matrix<float>(stream.device(), s->rows.rows(), s->out_gradient.columns());
  Problem p;
  p.entries = size.n;
  p.bytes = s->rows.view().flat().bytes() + s->result.view().flat().bytes();
  p.run = [s](Stream& on) { kernels::interact_pairs_forward(on, {s->rows_there, kSlots, s->dim, s->result}); };
  p.wrong = [s](Stream& on) {
    return differ("out", elements(on, s->result), interact_pairs_oracle(Dense(s->rows), kSlots, s->dim).values, 1e-4);
  };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->result.view().flat())); };
  return p;
}

Problem interact_pairs_backward(Stream& stream, CaseSize size, std::uint64_t seed) {
  auto const s = pairs(stream, size, seed);
  s->result = Matrix<float>(stream.device(), s->rows.rows(), s->rows.columns());
  Problem p;
  p.entries = size.n;
  p.bytes = 2 * s->rows.view().flat().bytes() + s->out_gradient.view().flat().bytes();
  p.run = [s](Stream& on) {
    kernels::interact_pairs_backward(on, {s->rows_there, kSlots, s->dim, s->out_gradient_there, s->result});
  };
  p.wrong = [s](Stream& on) {
    std::size_t const stride = row_stride(s->dim);
    Dense const rows(s->rows), gradient(s->out_gradient);
    Dense want(rows.rows, rows.columns);
    for (std::size_t i = 0; i < rows.rows; ++i) {
      for (std::size_t k = 0; k < s->dim; ++k) want.at(i, k) = gradient.at(i, k);
      std::size_t at = stride;
      for (std::size_t f = 0; f < kSlots; ++f) {
        for (std::size_t other = 0; other < f; ++other, ++at) {
          for (std::size_t k = 0; k < s->dim; ++k) {
            want.at(i, f * stride + k) += gradient.at(i, at) * rows.at(i, other * stride + k);
            want.at(i, other * stride + k) += gradient.at(i, at) * rows.at(i, f * stride + k);
          }
        }
      }
    }
    return differ("rows_gradient", elements(on, s->result), want.values, 1e-4);
  };
  p.bits = [s](Stream& on) { return bytes_of(elements(on, s->result)); };
  return p;
}

// Kept elements have one value, and the others are zero. A separate test checks the other properties of dropout.
Problem dropout(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    std::vector<std::uint32_t> samples;
    Array<std::uint32_t> samples_there;
    Matrix<float> values;
  };
  auto s = std::make_shared<State>();
  for (std::size_t i = 0; i < size.n; ++i) s->samples.push_back(static_cast<std::uint32_t>(i));
  s->samples_there = to_device(stream, s->samples);
  s->values = matrix(stream, std::vector<float>(size.n * row_stride(size.dim), 3), size.n, size.dim);
  Problem p;
  p.entries = size.n;
  p.bytes = 2 * s->values.view().flat().bytes();
  p.run = [s, seed](Stream& on) { kernels::dropout(on, {s->values, 0.5F, seed, 2, Clock{9}, s->samples_there}); };
  p.wrong = [s](Stream& on) {
    auto const got = elements(on, s->values);
    std::vector<double> want(got.size(), 0);
    double kept = 0;
    for (std::size_t e = 0; e < got.size(); ++e) {
      if (got[e] == 0) continue;
      want[e] = 6;
      ++kept;
    }
    double const n = static_cast<double>(got.size());
    std::string const share = std::abs(kept - n / 2) > 3 * std::sqrt(n) + 1 ? "not half of the values are kept" : "";
    return differ("values", got, want, 1e-6) + share;
  };
  p.bits = [s](Stream& on) { return bytes_of(elements(on, s->values)); };
  return p;
}

constexpr std::size_t kParts = 8;  // microbatches

Problem sum_parts(Stream& stream, CaseSize size, std::uint64_t seed) {
  struct State {
    Matrix<float> parts, parts_there;
    Array<std::int64_t> sums;
    Array<std::uint32_t> bad_element;
  };
  Random random(seed);
  auto s = std::make_shared<State>();
  s->parts = random_dense(random, kParts, size.n * size.dim);
  s->parts_there = on_device(stream, s->parts);
  s->sums = Array<std::int64_t>(stream.device(), size.n * size.dim);
  s->bad_element = to_device(stream, std::vector<std::uint32_t>{kNoRow});
  Problem p;
  p.entries = size.n;
  p.bytes = s->sums.bytes() + s->parts.view().flat().bytes();
  p.run = [s](Stream& on) { kernels::sum_parts(on, {s->parts_there, -30, s->sums, s->bad_element}); };
  p.wrong = [s](Stream& on) {
    std::vector<std::int64_t> want(s->sums.size(), 0);
    for (std::size_t i = 0; i < kParts; ++i) {
      for (std::size_t j = 0; j < want.size(); ++j) {
        want[j] += static_cast<std::int64_t>(std::floor(static_cast<double>(s->parts.row(i)[j]) * 0x1p30));
      }
    }
    return differ("sums", to_host(on, s->sums.view()), want) +
           differ("bad_row", to_host(on, s->bad_element.view()), std::vector<std::uint32_t>{kNoRow});
  };
  p.bits = [s](Stream& on) { return bytes_of(to_host(on, s->sums.view())); };
  return p;
}

constexpr KernelCase kDenseCases[] = {
    {"linear_forward", linear_forward},
    {"linear_backward", linear_backward},
    {"interact_pairs", interact_pairs},
    {"interact_pairs_backward", interact_pairs_backward},
    {"dropout", dropout},
    {"sum_parts", sum_parts},
};

}  // namespace

std::span<KernelCase const> dense_cases() { return kDenseCases; }

}  // namespace gpups::test
