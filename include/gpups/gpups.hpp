// SPDX-License-Identifier: Apache-2.0
// Includes the whole interface of gpups.
//
// A trainer with one table, one dense layer and checkpoints. Every rank runs train(). Functions and types without
// gpups' names are yours:
//
//   void train(Group const& group, std::filesystem::path const& folder) {
//     Store store(group, {.seed = 1});
//     TableId const words = store.add_table({.name = "words", .dim = 64});
//     Stream stream = store.make_stream();
//     std::vector<float> weights = initial_weights();            // the dense layer: equal on all ranks
//     if (std::filesystem::exists(folder / "manifest.json")) weights = weights_from(store.restore(folder)[0].bytes);
//     Array<float> dense(Device::host(), weights.size());        // the gradient of the dense layer
//
//     for (Clock clock = store.clock(); number(clock) < 10'000; clock = clock + 1) {
//       Samples const samples = share_of_batch(clock, group.rank(), group.size());
//       TableBatch const part{.table = words, .keys = samples.keys};
//       PreparedBatch const batch = store.prepare(stream, clock, {&part, 1}, samples.size());
//       store.wait_ready(batch);
//       Matrix<float> rows(Device::host(), batch.rows(0), 64), gradients(Device::host(), batch.entries(0), 64);
//       MatrixView<float> const out = rows;
//       store.pull(stream, batch, {&out, 1});
//       // Entry e uses row batch.positions(0)[e] of `rows`. Gradients are those of the summed loss of the samples.
//       compute(samples, batch.positions(0), rows, weights, gradients, dense);
//       CollectiveRequest const request = group.begin_allreduce(stream, dense.view());
//       TableGradients const of_rows{.sources = gradients};
//       store.push(stream, batch, {&of_rows, 1});
//       store.advance_clock();                                   // rows are updated by the table's optimizer
//       group.wait_allreduce(stream, request);
//       update(weights, dense);  // your optimizer, equal on all ranks; `dense`: the sum; sum integers for equal bits
//       on any number of ranks
//     }
//     Blob const blob{"weights", bytes_of(weights)};
//     store.save(folder, {&blob, 1});
//   }
//
//   int main() {
//     run_ranks(Group::threads(4), [](Group group) { train(group, "checkpoint"); });
//   }
//
// This example prepares each batch in its own step. A fast program prepares batches four or more steps ahead.
#pragma once

#include "gpups/array.hpp"
#include "gpups/compiler.hpp"
#include "gpups/device.hpp"
#include "gpups/error.hpp"
#include "gpups/group.hpp"
#include "gpups/placement.hpp"
#include "gpups/stats.hpp"
#include "gpups/store.hpp"
#include "gpups/stream.hpp"
#include "gpups/table.hpp"
#include "gpups/top_k_allreduce.hpp"
#include "gpups/types.hpp"
