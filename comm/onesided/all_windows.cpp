// SPDX-License-Identifier: Apache-2.0
#include <barrier>
#include <thread>

#include "comm/onesided/window.hpp"
#include "kernels/base/build_config.hpp"

namespace gpups::comm {
namespace {

#if GPUPS_HAS_UCX
// Creates windows over UCX in one process, with one thread for each rank, since ranks wait for each other.
std::vector<std::unique_ptr<Window>> make_ucx(int ranks, std::size_t bytes) {
  auto const count = static_cast<std::size_t>(ranks);
  std::vector<std::unique_ptr<Window>> ends(count);
  std::vector<std::string> sent(count);
  std::barrier all(ranks);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      ends[rank] = make_ucx_window(Rank{static_cast<std::uint32_t>(rank)}, bytes, [&](std::string const& mine) {
        sent[rank] = mine;
        all.arrive_and_wait();
        auto const received = sent;
        all.arrive_and_wait();
        return received;
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
}
#endif

constexpr WindowFactory kAllWindows[] = {
    {"local", make_local_windows},
#if GPUPS_HAS_UCX
    {"ucx", make_ucx},
#endif
};

}  // namespace

std::span<WindowFactory const> all_windows() { return kAllWindows; }

}  // namespace gpups::comm
