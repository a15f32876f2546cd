// SPDX-License-Identifier: Apache-2.0
#include "bench/bare_products.hpp"

#include <dnnl.h>

#include <atomic>
#include <barrier>
#include <thread>

#include "bench/core_seconds.hpp"
#include "gpups/array.hpp"
#include "kernels/base/check.hpp"
#include "trainer/accounts/stage_times.hpp"

// A function of libgomp; clang does not find its header.
extern "C" void omp_set_num_threads(int threads) noexcept;

namespace gpups::bench {
namespace {

Matrix<float> some_numbers(std::size_t rows, std::size_t columns) {
  Matrix<float> matrix(Device::host(), rows, columns);
  std::size_t i = 0;
  for (float& x : matrix.view().flat()) x = static_cast<float>(++i % 97) / 97.0F - 0.5F;
  return matrix;
}

// out = a * b, all stored by rows; 'T': the matrix is stored transposed.
void multiply(char transpose_a, char transpose_b, std::size_t inner, Matrix<float> const& a, Matrix<float> const& b,
              Matrix<float> const& out) {
  auto const size = [](std::size_t n) { return static_cast<dnnl_dim_t>(n); };
  dnnl_status_t const status =
      dnnl_sgemm(transpose_a, transpose_b, size(out.rows()), size(out.columns()), size(inner), 1.0F, a.view().data(),
                 size(a.stride()), b.view().data(), size(b.stride()), 0.0F, out.view().data(), size(out.stride()));
  GPUPS_REQUIRE(status == dnnl_success,
                "oneDNN rejected a product with status {} (nothing can be measured): check the installation of oneDNN",
                static_cast<int>(status));
}

// The matrices of a layer, for one thread.
struct Layer {
  explicit Layer(LayerShape const& s)
      : shape(s),
        in(some_numbers(s.samples, s.inputs)),
        weights(some_numbers(s.outputs, s.inputs)),
        out(some_numbers(s.samples, s.outputs)),
        out_gradient(some_numbers(s.samples, s.outputs)),
        weights_gradient(some_numbers(s.outputs, s.inputs)),
        in_gradient(some_numbers(s.samples, s.inputs)) {}

  void forward() const { multiply('N', 'T', shape.inputs, in, weights, out); }
  void backward() const {
    multiply('T', 'N', shape.samples, out_gradient, in, weights_gradient);
    if (shape.input_gradient) multiply('N', 'N', shape.outputs, out_gradient, weights, in_gradient);
  }

  LayerShape shape;
  Matrix<float> in, weights, out, out_gradient, weights_gradient, in_gradient;
};

void compute(std::vector<Layer> const& layers) {
  for (auto layer = layers.begin(); layer != layers.end(); ++layer) layer->forward();
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) layer->backward();
}

}  // namespace

std::vector<LayerShape> layer_shapes(trainer::Parameters const& parameters, std::size_t samples) {
  std::vector<LayerShape> shapes;
  for (trainer::Parameter const& p : parameters.all()) {
    if (!p.name.ends_with(".weights")) continue;
    shapes.push_back({samples, p.columns, p.rows, !p.name.starts_with("bottom.0.")});
  }
  return shapes;
}

double products_of(std::vector<LayerShape> const& shapes) {
  double sum = 0;
  for (auto const& s : shapes)
    sum += static_cast<double>(s.samples * s.inputs * s.outputs * (s.input_gradient ? 3 : 2));
  return sum;
}

ProductsTime time_products(std::vector<LayerShape> const& shapes, std::size_t microbatches, int threads) {
  trainer::Stopwatch watch;
  std::barrier all_are_here(threads, [&]() noexcept { watch.start(); });
  std::atomic<double> core_seconds = 0;
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      omp_set_num_threads(1);
      std::vector<Layer> const layers(shapes.begin(), shapes.end());
      compute(layers);  // oneDNN generates its code, and memory is touched for the first time
      all_are_here.arrive_and_wait();
      double const begin = core_seconds_of(CLOCK_THREAD_CPUTIME_ID);
      for (auto i = static_cast<std::size_t>(t); i < microbatches; i += static_cast<std::size_t>(threads)) {
        compute(layers);
      }
      core_seconds += core_seconds_of(CLOCK_THREAD_CPUTIME_ID) - begin;
    });
  }
  for (std::thread& thread : running) thread.join();
  return {watch.seconds(), core_seconds};
}

}  // namespace gpups::bench
