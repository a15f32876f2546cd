// SPDX-License-Identifier: Apache-2.0
#include "bench/against/copy_side.hpp"

#include <cstring>
#include <memory>

#include "gpups/array.hpp"
#include "kernels/runtime/arena.hpp"
#include "kernels/runtime/space.hpp"

namespace gpups::bench {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 30;

// Calls part(first, count) for equal parts of kBytes, one for each thread.
template <class F>
void in_parts(Stream& stream, F part) {
  auto const parts = static_cast<std::size_t>(stream.threads());
  kernels::host_exec(stream).arena->blocks(parts, [&](std::size_t p) {
    std::size_t const first = kBytes * p / parts / 64 * 64, last = kBytes * (p + 1) / parts / 64 * 64;
    part(first, last - first);
  });
}

struct Buffers {
  explicit Buffers(Stream& stream) : from(stream.device(), kBytes), to(stream.device(), kBytes) {
    if (!stream.device().is_host()) {
      memory::fill_bytes(stream, from.data(), 1, kBytes);
      return;
    }
    in_parts(stream, [this](std::size_t first, std::size_t count) {
      std::memset(from.data() + first, 1, count);
      std::memset(to.data() + first, 2, count);
    });
  }
  Array<std::uint8_t> from, to;
  std::uint64_t sum = 0;
};

}  // namespace

Side copy_side(Stream& stream) {
  auto const buffers = std::make_shared<Buffers>(stream);
  return {"memcpy of 1 GiB", 2.0 * kBytes, [buffers, &stream] {
            if (!stream.device().is_host()) {
              copy<std::uint8_t>(stream, buffers->to, buffers->from.view());
              return stream.wait();
            }
            in_parts(stream, [&](std::size_t first, std::size_t count) {
              std::memcpy(buffers->to.data() + first, buffers->from.data() + first, count);
            });
          }};
}

Side read_side(Stream& stream) {
  auto const buffers = std::make_shared<Buffers>(stream);
  return {"reading 1 GiB", 1.0 * kBytes, [buffers, &stream] {
            in_parts(stream, [&](std::size_t first, std::size_t count) {
              auto const* const words = reinterpret_cast<std::uint64_t const*>(buffers->from.data() + first);
              std::uint64_t sum = 0;
#pragma GCC ivdep
              for (std::size_t i = 0; i < count / 8; ++i) sum += words[i];
              __atomic_fetch_add(&buffers->sum, sum, __ATOMIC_RELAXED);
            });
          }};
}

}  // namespace gpups::bench
