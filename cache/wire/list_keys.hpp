// SPDX-License-Identifier: Apache-2.0
// The keys of lists of rows, which two ranks have in the same order: on the device of the store; and on the host, where
// key dictionaries and late fetches need them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "gpups/array.hpp"
#include "gpups/stream.hpp"
#include "gpups/types.hpp"

namespace gpups::cache {

// The keys of one part of a batch, in the order of its list.
struct PartKeys {
  TableId table{};
  std::vector<Key> keys;
};
// The same on the device of the store.
struct ListKeys {
  TableId table{};
  View<Key const> keys{};
  std::shared_ptr<Array<Key> const> memory{};  // which the parts of a message share
};

// Returns the keys of all parts on the host.
std::vector<PartKeys> wait_download_keys(Stream& stream, std::span<ListKeys const> parts);
// Copies the keys of all parts to the device. Queued on the stream.
std::vector<ListKeys> upload_keys(Stream& stream, std::span<PartKeys const> parts);

}  // namespace gpups::cache
