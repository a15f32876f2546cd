// SPDX-License-Identifier: Apache-2.0
// An application outside of the build of gpups, which links the installed library: trains a row on two ranks, and
// catches an error of the library. The exit status is 0 if the results are right.
#include <gpups/files.hpp>
#include <gpups/gpups.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

using namespace gpups;

void train(Group const& group) {
  Store store(group, {.seed = 1});
  TableId const table = store.add_table({.name = "t", .dim = 4, .optimizer = {.kind = Optimizer::Kind::kSgd}});
  Stream stream = store.make_stream();
  std::vector<Key> const keys{Key{7}};
  TableBatch const part{.table = table, .keys = View<Key const>(keys)};
  PreparedBatch const batch = store.prepare(stream, store.clock(), {&part, 1}, 1);
  store.wait_ready(batch);
  Matrix<float> gradient(Device::host(), 1, 4);
  for (float& g : gradient.row(0)) g = 1;
  TableGradients const gradients{.sources = gradient};
  store.push(stream, batch, {&gradients, 1});
  store.advance_clock();
  store.wait_applied();
  if (store.stats().steps != 1 || store.size(table) != 1) throw Error("the step was not trained");
  std::vector<std::int64_t> sum{1};
  group.wait_allreduce(stream, group.begin_allreduce(stream, sum));
  if (sum[0] != group.size()) throw Error("the sum is wrong");
}

int main() {
  try {
    run_ranks(Group::threads(2), train);
  } catch (std::exception const& error) {
    std::printf("error: %s\n", error.what());
    return 1;
  }
  try {
    device_from("no device");
  } catch (Error const& error) {
    std::puts("right");
    return 0;
  }
  return 1;
}
