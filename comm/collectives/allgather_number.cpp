// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/allgather_number.hpp"

#include <cstring>

namespace gpups::comm {

CoTask<std::vector<std::uint64_t>> allgather_number(Communicator& comm, std::uint64_t mine) {
  std::vector<std::uint64_t> numbers(static_cast<std::size_t>(comm.ranks()), mine);
  for (Rank const q : other_ranks(comm)) {
    Bytes bytes(Device::host(), sizeof mine);
    std::memcpy(bytes.data(), &mine, sizeof mine);
    comm.send(q, std::move(bytes));
  }
  for (Rank const q : other_ranks(comm)) {
    Bytes const bytes = co_await comm.receive(q, sizeof mine, Device::host());
    if (bytes.size() != sizeof mine)
      comm.throw_peer_error(q, "sent a message of the wrong size where all ranks exchange one number");
    std::memcpy(&numbers[number(q)], bytes.data(), sizeof mine);
  }
  co_return numbers;
}

}  // namespace gpups::comm
