// SPDX-License-Identifier: Apache-2.0
// The counters of streams: launches, waits and host copies of known calls.
#include "kernels/runtime/space.hpp"

#include "kernels/index/key_index.hpp"
#include "kernels/rows/copy_rows.hpp"
#include "kernels/runtime/arena.hpp"
#include "kernels/sum/sum_gradients.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/on_devices.hpp"
#include "tests/support/stream_calls.hpp"

namespace gpups::test::stream_counters_test {
namespace {

class StreamCounters : public OnDevice {
 protected:
  // The number of host copies if the stream is on a GPU.
  std::uint64_t copies(std::uint64_t number) const { return GetParam().is_host() ? 0 : number; }
};

TEST_P(StreamCounters, CountWaitsAndCopies) {
  Stream stream(GetParam(), 2);
  StreamCallCounter const counter(stream);
  stream.wait();
  EXPECT_EQ(counter.calls(), (StreamCalls{0, 1, 0}));
  auto const there = to_device(stream, std::vector{1, 2, 3});
  EXPECT_EQ(counter.calls(), (StreamCalls{0, 2, copies(1)}));
  Array<int> const other(stream.device(), 3);
  copy<int>(stream, other, there);
  EXPECT_EQ(to_host(stream, other.view()), (std::vector{1, 2, 3}));
  EXPECT_EQ(counter.calls(), (StreamCalls{0, 3, copies(2)}));
}

TEST_P(StreamCounters, CountLaunches) {
  Stream stream(GetParam(), 2);
  auto const table = rows(stream, std::vector<float>(40 * 8, 1.0F), 40, 8);
  auto const ids = to_device(stream, std::vector<std::uint32_t>{3, 1, 39});
  Matrix<float> const out(stream.device(), 3, 8);
  StreamCallCounter const counter(stream);
  kernels::Gather const gather{.rows = table.const_ref(), .ids = ids, .out = out};
  kernels::gather(stream, gather);
  EXPECT_EQ(counter.calls(), (StreamCalls{1, 0, 0}));
  kernels::parallel_for(stream, 5, [&](Stream& part, std::size_t) { kernels::gather(part, gather); });
  stream.wait();
  bool const host = GetParam().is_host();
  EXPECT_EQ(counter.calls(), (StreamCalls{host ? 2U : 6U, 1, 0})) << "the bodies of a loop on the host are one launch";
}

TEST_P(StreamCounters, CountReadBacksOfKernels) {
  Stream stream(GetParam(), 2);
  kernels::KeyIndex index(stream.device(), 100);
  auto const keys = to_device(stream, distinct_keys(50));
  Array<std::uint32_t> const ids(stream.device(), 50);
  StreamCallCounter const counter(stream);
  kernels::KeyIndex::Search const search{&index, keys, ids};
  kernels::KeyIndex::wait_find_missing(stream, {&search, 1});
  EXPECT_EQ(counter.calls(), (StreamCalls{1, 1, copies(1)}));
  index.wait_find_or_insert(stream, keys, ids);
  EXPECT_GE(counter.calls().waits, 2U);
}

TEST_P(StreamCounters, AddUpOverSiblings) {
  Stream stream(GetParam(), 2), other(GetParam(), 2);
  Stream sibling = stream.sibling();
  StreamCallCounter const counter(stream);
  Stream copied = sibling;
  sibling.wait();
  copied.wait();
  other.wait();
  EXPECT_EQ(counter.calls(), (StreamCalls{0, 2, 0}));
}

INSTANTIATE_TEST_SUITE_P(Devices, StreamCounters, kDevices, device_name);

}  // namespace
}  // namespace gpups::test::stream_counters_test
