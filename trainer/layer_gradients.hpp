// SPDX-License-Identifier: Apache-2.0
// Where a microbatch leaves the gradients of dense layers, and who hears of each as soon as it is there.
#pragma once

#include <functional>
#include <utility>

#include "gpups/stream.hpp"
#include "trainer/parameters.hpp"

namespace gpups::trainer {

class LayerGradients {
 public:
  using OnReady = std::function<void(Stream&, Parameter const&)>;

  // all: shaped as the parameters.
  LayerGradients(View<float> all, OnReady on_ready = {})
      : all_(all), on_ready_(std::move(on_ready)) {}  // NOLINT: implicit on purpose

  MatrixView<float> matrix(Parameter const& p) const { return p.matrix(all_); }
  View<float> vector(Parameter const& p) const { return p.vector(all_); }

  // All that writes these gradients is queued on `stream`.
  template <class... P>
  void mark_ready(Stream& stream, P const&... parameters) const {
    if (on_ready_) (on_ready_(stream, parameters), ...);
  }

 private:
  View<float> all_;
  OnReady on_ready_;
};

}  // namespace gpups::trainer
