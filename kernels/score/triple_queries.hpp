// SPDX-License-Identifier: Apache-2.0
// The parts of a step in which triples share candidates: the entries of triples, their queries, and the gradients of
// their rows from those of their queries.
#pragma once

#include "gpups/types.hpp"
#include "kernels/score/types.hpp"

namespace gpups::kernels {

// Lists the entries of triples: for each use of a row its key, and the source of its gradient.
struct ExpandTriples {
  View<std::uint32_t const> triples;  // (n, 3): the numbers of subject, relation and object
  View<Key const> entities;           // the key of each entity
  View<Key const> relations;
  std::size_t entries_per_triple;      // in the entity table; the first two are the subject and the object
  View<Key> entity_keys;               // (>= n * entries_per_triple)
  View<std::uint32_t> entity_sources;  // or empty: entry e has source e
  View<Key> relation_keys;             // (n)
  View<std::uint32_t> relation_sources;
  bool own_relation_sources;  // true: the relation of triple i has source i of a separate list; false: source
                              // kRelationGradient of the triple
};
void expand_triples(Stream& stream, ExpandTriples const& arguments);

// The queries of triples: out.row(i) is left.row(i) * right.row(i), element by element, or times the conjugate; 12 *
// dim bytes per row. If the right row is a matrix: left * right, or right * left; 4 * dim^2 bytes per row. For
// distances: the left row moved by the right one, or moved back.

// Computes the queries for objects or subjects.
struct CombineRows {
  Algebra algebra;
  bool conjugate;         // for subjects: the conjugate of the right row, right * left, or moved back
  PickedRows left;        // rows of (any, dim)
  PickedRows right;       // rows of (any, relation_dim(algebra, dim))
  MatrixView<float> out;  // (n, dim); padding is set to zero
};
void combine_rows(Stream& stream, CombineRows const& arguments);

// Computes the gradients of the rows of triples from the gradients of their queries, and adds the regulariser.
struct FinishTriples {
  Algebra algebra;
  Regulariser regulariser;
  PickedRows subjects;       // (n) rows of (any, dim)
  PickedRows relations;      // (n) rows of (any, relation_dim)
  PickedRows objects;        // (n) rows of (any, dim)
  View<float const> slopes;  // (n): the derivative of the loss by the score of the positive
  // (n * kSourcesPerTriple, dim): contains the queries. The rows for the gradients of subject and object contain the
  // gradients of the queries for objects and for subjects, without the part of the positive. With objects_only, those
  // for subjects are 0 and not read.
  MatrixView<float> sources;
  bool objects_only = false;
  MatrixView<float> relation_sources;  // (n, relation_dim), all elements are set; may be rows of `sources`
  View<std::int64_t> losses;           // (n), in units of kLossUnit; the loss of the regulariser is added
  float loss_scale = 1;                // a factor of what is added, not of the gradients
};
void finish_triples(Stream& stream, FinishTriples const& arguments);

}  // namespace gpups::kernels
