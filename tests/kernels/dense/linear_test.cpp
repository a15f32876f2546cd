// SPDX-License-Identifier: Apache-2.0
// Linear layers, compared with loops in double, and their gradients, compared with finite differences. Bits do not
// depend on addresses and threads, and padding is neither read nor written.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <tuple>

#include "kernels/dense/linear.hpp"
#include "kernels/runtime/arena.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/dense_oracle.hpp"

extern "C" int omp_get_max_threads(void) noexcept;
extern "C" void omp_set_num_threads(int threads) noexcept;

namespace gpups::test::linear_test {
namespace {

using namespace kernels;

// A layer with its data and gradients.
struct Layer {
  Layer(std::size_t m, std::size_t inputs, std::size_t outputs, std::uint64_t seed) : random(seed) {
    in = random_dense(random, m, inputs);
    weights = random_dense(random, outputs, inputs);
    bias = random_dense(random, 1, outputs);
    out = random_dense(random, m, outputs);
    out_gradient = random_dense(random, m, outputs);
    in_gradient = random_dense(random, m, inputs);
    weights_gradient = random_dense(random, outputs, inputs);
    bias_gradient = Array<float>(Device::host(), outputs);
  }
  View<float const> bias_view() const { return {bias.view().data(), bias.columns()}; }
  void forward(Stream& stream, bool relu, bool biased = true) {
    linear_forward(stream, {in, weights, biased ? bias_view() : View<float const>{}, relu, out});
  }
  void backward(Stream& stream, bool relu, bool accumulate) {
    linear_backward(stream,
                    {in, weights, out, relu, out_gradient, in_gradient, accumulate, weights_gradient, bias_gradient});
  }
  std::string bits() const {
    std::string all;
    for (auto const* matrix : {&out, &out_gradient, &in_gradient, &weights_gradient}) {
      for (std::size_t i = 0; i < matrix->rows(); ++i) {
        all.append(reinterpret_cast<char const*>(matrix->row(i).data()), matrix->row(i).size_bytes());
      }
    }
    return all.append(reinterpret_cast<char const*>(bias_gradient.data()), bias_gradient.bytes());
  }

  Random random;
  Matrix<float> in, weights, bias, out, out_gradient, in_gradient, weights_gradient;
  Array<float> bias_gradient;
};

// m, inputs, outputs
class Linear : public testing::TestWithParam<std::tuple<std::size_t, std::size_t, std::size_t>> {
 protected:
  Layer layer(std::uint64_t seed = 1) const {
    auto const [m, inputs, outputs] = GetParam();
    return {m, inputs, outputs, seed};
  }
  Stream stream{Device::host(), 1};
};
INSTANTIATE_TEST_SUITE_P(Sizes, Linear,
                         testing::Combine(testing::Values(0, 1, 3, 511), testing::Values(0, 1, 3, 16, 17, 130),
                                          testing::Values(1, 3, 16, 17)));

TEST_P(Linear, ForwardIsProductPlusBias) {
  for (bool relu : {false, true}) {
    for (bool biased : {false, true}) {
      Layer l = layer();
      l.forward(stream, relu, biased);
      Dense const want = linear_oracle(Dense(l.in), Dense(l.weights), biased ? Dense(l.bias) : Dense(), relu);
      for (std::size_t i = 0; i < want.rows; ++i) {
        for (std::size_t j = 0; j < want.columns; ++j)
          ASSERT_NEAR(l.out.row(i)[j], want.at(i, j), 2e-5) << i << ", " << j;
      }
    }
  }
}

TEST_P(Linear, GradientsMatchFiniteDifferences) {
  for (bool relu : {false, true}) {
    for (bool accumulate : {false, true}) {
      Layer l = layer(2);
      Dense in(l.in), weights(l.weights), bias(l.bias);
      Dense const by_out(l.out_gradient), before(l.in_gradient);
      l.forward(stream, relu);
      l.backward(stream, relu, accumulate);
      auto const value = [&] { return weighted_sum(by_out, linear_oracle(in, weights, bias, relu)); };
      auto const near = [&](double got, double& x, double added, char const* of) {
        double const want = difference(x, value) + added;
        ASSERT_NEAR(got, want, 1e-4 * std::max(1.0, std::abs(want))) << of;
      };
      for (int k = 0; k < 12; ++k) {
        std::size_t const i = below(l.random, weights.rows);
        near(l.bias_gradient[i], bias.at(0, i), 0, "bias");
        if (weights.columns == 0) continue;
        std::size_t const j = below(l.random, weights.columns);
        near(l.weights_gradient.row(i)[j], weights.at(i, j), 0, "weights");
        if (in.rows == 0) continue;
        std::size_t const s = below(l.random, in.rows);
        near(l.in_gradient.row(s)[j], in.at(s, j), accumulate ? before.at(s, j) : 0, "in");
      }
    }
  }
}

TEST_P(Linear, OutGradientIsMaskedInPlace) {
  Layer l = layer(3);
  Dense const before(l.out_gradient);
  l.forward(stream, true);
  l.backward(stream, true, false);
  for (std::size_t i = 0; i < before.rows; ++i) {
    for (std::size_t j = 0; j < before.columns; ++j) {
      ASSERT_EQ(l.out_gradient.row(i)[j], l.out.row(i)[j] > 0 ? before.at(i, j) : 0.0);
    }
  }
}

TEST_P(Linear, OmittedOutputsAreNotComputed) {
  Layer l = layer(4), other = layer(4);
  l.forward(stream, false);
  l.backward(stream, false, false);
  linear_backward(stream,
                  {other.in, other.weights, {}, false, other.out_gradient, {}, false, other.weights_gradient, {}});
  EXPECT_EQ(differ("weights", to_host(stream, other.weights_gradient.view().flat()),
                   to_host(stream, l.weights_gradient.view().flat())),
            "");
}

constexpr float kMark = 12345.0F;

// NaN in the padding of inputs must not change results, and a marker in the padding of outputs must stay.
TEST_P(Linear, PaddingIsNeitherReadNorWritten) {
  Layer l = layer(5), plain = layer(5);
  auto const each_padding = [](Matrix<float> const& matrix, auto act) {
    for (std::size_t i = 0; i < matrix.rows(); ++i) {
      for (std::size_t j = matrix.columns(); j < matrix.stride(); ++j) act(matrix.view().row(i)[j]);
    }
  };
  for (auto const* read : {&l.in, &l.weights, &l.bias}) {
    each_padding(*read, [](float& x) { x = std::numeric_limits<float>::quiet_NaN(); });
  }
  auto const written = {&l.out, &l.out_gradient, &l.in_gradient, &l.weights_gradient};
  for (auto const* matrix : written) each_padding(*matrix, [](float& x) { x = kMark; });
  for (Layer* each : {&l, &plain}) {
    each->forward(stream, true);
    each->backward(stream, true, true);
  }
  EXPECT_TRUE(l.bits() == plain.bits());
  for (auto const* matrix : written) each_padding(*matrix, [](float& x) { EXPECT_EQ(x, kMark); });
}

// A copy of the matrix that begins 16 * `shift` bytes after the start of its memory.
struct Shifted {
  Shifted(Matrix<float> const& from, std::size_t shift)
      : memory(Device::host(), from.view().flat().size() + 4 * shift) {
    view = {memory.data() + 4 * shift, from.rows(), from.columns(), from.stride()};
    if (!view.flat().empty()) std::memcpy(view.data(), from.view().data(), view.flat().bytes());
  }
  Array<float> memory;
  MatrixView<float> view;
};

TEST_P(Linear, BitsDoNotDependOnAddresses) {
  for (std::size_t shift : {0, 1, 2, 3}) {
    Layer l = layer(6);
    Shifted const in(l.in, shift), weights(l.weights, (shift + 1) % 4), out(l.out, 3 - shift);
    Shifted const by_out(l.out_gradient, shift), by_in(l.in_gradient, (shift + 2) % 4);
    Shifted const by_weights(l.weights_gradient, shift);
    Array<float> const by_bias(Device::host(), l.bias.columns());
    linear_forward(stream, {in.view, weights.view, l.bias_view(), true, out.view});
    linear_backward(stream,
                    {in.view, weights.view, out.view, true, by_out.view, by_in.view, false, by_weights.view, by_bias});
    l.forward(stream, true);
    l.backward(stream, true, false);
    for (auto const& [moved, plain] :
         {std::pair(&out, &l.out), std::pair(&by_out, &l.out_gradient), std::pair(&by_in, &l.in_gradient),
          std::pair(&by_weights, &l.weights_gradient)}) {
      for (std::size_t i = 0; i < plain->rows(); ++i) {
        auto const row = plain->row(i);
        ASSERT_TRUE(row.empty() || std::memcmp(moved->view.row(i), row.data(), row.size_bytes()) == 0) << shift;
      }
    }
    ASSERT_EQ(std::memcmp(by_bias.data(), l.bias_gradient.data(), by_bias.bytes()), 0);
  }
}

// The layers are so large that oneDNN would split them over threads if it were allowed to. The number of OpenMP threads
// must be restored.
TEST(LinearThreads, BitsAreIndependentOfThreadCount) {
  int const before = omp_get_max_threads();
  std::string alone;
  for (int threads : {1, 2, 3}) {
    omp_set_num_threads(threads);
    Stream stream(Device::host(), threads);
    std::vector<Layer> layers;
    for (int i = 0; i < 4; ++i) layers.emplace_back(512, 200, 300, 7);
    parallel_for(stream, layers.size(), [&](Stream& part, std::size_t i) {
      layers[i].forward(part, true);
      layers[i].backward(part, true, false);
    });
    Layer direct(512, 200, 300, 7);
    direct.forward(stream, true);
    direct.backward(stream, true, false);
    EXPECT_EQ(omp_get_max_threads(), threads);
    if (alone.empty()) alone = direct.bits();
    EXPECT_TRUE(direct.bits() == alone) << threads;
    for (Layer const& l : layers) EXPECT_TRUE(l.bits() == alone) << threads;
  }
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace gpups::test::linear_test
