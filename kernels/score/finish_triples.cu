// SPDX-License-Identifier: Apache-2.0
#include "kernels/score/finish_triples.hpp"

#include "kernels/score/triple_math.hpp"

namespace gpups::kernels {

template <class N, Space S>
void finish_triples_of(Exec<S> ex, FinishTriples const& g) {
  each_row(ex, g.slopes.size(), [g] GPUPS_FN(std::size_t i, NativeLanes lanes) {
    std::size_t const stride = g.sources.stride();
    float* const sources = g.sources.row(kSourcesPerTriple * i);
    float const regular = finish_gradients<N>(lanes, g.regulariser, g.slopes[i], g.subjects.row(i), g.relations.row(i),
                                              g.objects.row(i), sources + kObjectQuery * stride,
                                              sources + kSubjectGradient * stride, sources + kObjectGradient * stride,
                                              sources + kRelationGradient * stride, g.sources.columns(), stride);
    if (lanes.first()) g.losses[i] += loss_units(regular);
  });
}

template <Space S>
void run(Exec<S> ex, FinishTriples const& g) {
  g.algebra == Algebra::kComplex ? finish_triples_of<ComplexNumber<float>>(ex, g)
                                 : finish_triples_of<RealNumber<float>>(ex, g);
}

GPUPS_KERNEL(finish_triples, FinishTriples)

}  // namespace gpups::kernels
