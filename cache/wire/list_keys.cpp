// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/list_keys.hpp"

#include "kernels/base/check.hpp"
#include "kernels/runtime/host_reads.hpp"
#include "kernels/runtime/upload.hpp"

namespace gpups::cache {

std::vector<PartKeys> wait_download_keys(Stream& stream, std::span<ListKeys const> parts) {
  kernels::HostReads reads(stream);
  std::vector<PartKeys> downloaded(parts.size());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    downloaded[p].table = parts[p].table;
    reads.add<Key>(parts[p].keys, downloaded[p].keys);
  }
  reads.wait();
  return downloaded;
}

std::vector<ListKeys> upload_keys(Stream& stream, std::span<PartKeys const> parts) {
  std::vector<Key> all;
  for (auto const& part : parts) all.insert(all.end(), part.keys.begin(), part.keys.end());
  auto const memory = std::make_shared<Array<Key>>(stream.device(), all.size());
  kernels::upload<Key>(stream, *memory, all);
  std::vector<ListKeys> uploaded;
  std::size_t first = 0;
  for (auto const& [table, keys] : parts) {
    uploaded.push_back({table, memory->view().slice(first, keys.size()), memory});
    first += keys.size();
  }
  return uploaded;
}

}  // namespace gpups::cache
