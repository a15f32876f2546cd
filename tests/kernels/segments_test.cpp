// SPDX-License-Identifier: Apache-2.0
// Many segments in one launch: the host and a GPU give the results of one call for each segment, and the number of
// launches, waits and copies does not depend on the number of segments.
#include "kernels/segments.hpp"

#include <deque>

#include "kernels/key_index.hpp"
#include "tests/support/inputs.hpp"
#include "tests/support/on_devices.hpp"
#include "tests/support/stream_calls.hpp"

namespace gpups::test {
namespace {

using kernels::kNoRow;

// Sizes of segments: none, one, and more than the threads of a block.
std::size_t size_of(std::size_t segment) { return std::array{3, 0, 33, 1, 300, 0, 64}[segment % 7]; }

class Segments : public OnDevice {};

TEST_P(Segments, FindKeysOfManyIndicesInOneLaunch) {
  for (std::size_t const count : {1, 2, 40, 100}) {
    Stream stream(GetParam(), 3);
    std::deque<kernels::KeyIndex> indices;
    std::vector<Array<Key>> keys;
    std::vector<Array<std::uint32_t>> ids;
    std::vector<kernels::KeyIndex::Search> searches;
    for (std::size_t k = 0; k < count; ++k) {
      auto& index = indices.emplace_back(stream.device(), 1000, kernels::Growth::kByMoving);
      // Every third key is absent.
      auto all = distinct_keys(size_of(k) + k, 1000 * k);
      auto present = all;
      for (std::size_t i = all.size(); i-- > 0;) {
        if (i % 3 == 1) present.erase(present.begin() + static_cast<std::ptrdiff_t>(i));
      }
      auto const there = to_device(stream, present);
      Array<std::uint32_t> const inserted(stream.device(), present.size());
      index.wait_find_or_insert(stream, there, inserted);
      keys.push_back(to_device(stream, all));
      ids.emplace_back(stream.device(), all.size());
      searches.push_back({&index, keys.back(), ids.back()});
    }
    StreamCallCounter const counter(stream);
    kernels::KeyIndex::find(stream, searches);
    std::uint64_t const copies = GetParam().is_host() || count == 1 ? 0 : 1;
    EXPECT_EQ(counter.calls(), (StreamCalls{1, 0, copies})) << count;
    std::vector<std::uint32_t> absent(count, 0);
    for (std::size_t k = 0; k < count; ++k) {
      auto const found = to_host(stream, ids[k].view());
      std::uint32_t present = 0;
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i], i % 3 == 1 ? kNoRow : present) << k << ", " << i;
        (i % 3 == 1 ? absent[k] : present) += 1;
      }
    }
    if (GetParam().is_host()) continue;  // there, lists with many new keys are not searched
    EXPECT_EQ(kernels::KeyIndex::wait_find_missing(stream, searches), absent);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Segments, kDevices, device_name);

}  // namespace
}  // namespace gpups::test
