// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/gather_number.hpp"

#include <cstring>

#include "comm/collective/others.hpp"

namespace gpups::comm {

Task<std::vector<std::uint64_t>> gather_number(Mesh& mesh, std::uint64_t mine) {
  std::vector<std::uint64_t> numbers(static_cast<std::size_t>(mesh.ranks()), mine);
  for (Rank const q : others(mesh)) {
    Bytes bytes(Device::host(), sizeof mine);
    std::memcpy(bytes.data(), &mine, sizeof mine);
    mesh.send(q, std::move(bytes));
  }
  for (Rank const q : others(mesh)) {
    Bytes const bytes = co_await mesh.receive(q, sizeof mine, Device::host());
    if (bytes.size() != sizeof mine) mesh.refuse(q, "sent something else where it should say one number");
    std::memcpy(&numbers[number(q)], bytes.data(), sizeof mine);
  }
  co_return numbers;
}

}  // namespace gpups::comm
