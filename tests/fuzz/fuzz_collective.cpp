// SPDX-License-Identifier: Apache-2.0
// Allreduces whose messages a script changes after all checksums: link costs, numbers for the selection of an
// algorithm, streams, arrays and integers. Each rank gets a sum or throws PeerError. The header of a message is
// rejected, or is encoded as the same bytes again.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <typeinfo>
#include <vector>

#include "comm/base/serialization.hpp"
#include "comm/collectives/allreduce/float_allreduce.hpp"
#include "comm/collectives/allreduce/integer_allreduce.hpp"
#include "comm/collectives/collective_header.hpp"
#include "gpups/error.hpp"
#include "tests/fuzz/script.hpp"
#include "tests/support/memory_communicator.hpp"

namespace gpups::fuzz {
namespace {

using comm::CollectiveKind;
using comm::CollectiveTask;
using comm::Communicator;
using comm::CoTask;

// Links are measured once and cached, so that runs are fast.
comm::LinkCostCache links() { return comm::LinkCostCache(std::filesystem::temp_directory_path() / "gpups-fuzz-links"); }

class Sums {
 public:
  explicit Sums(Script& script) : script_(script), ranks_(2 + script.byte() % 3), comms_(ranks_, script.byte()) {
    for (int rank = 0; rank < ranks_; ++rank)
      selectors_.push_back(std::make_unique<comm::Selector>(links(), std::nullopt));
    comms_.on_arrival = [this](Rank, View<std::uint8_t> bytes) { change(bytes); };
  }

  void run_some() {
    for (int sums = 1 + script_.byte() % 4; sums > 0; --sums) {
      auto const kind = script_.byte() % 4;
      std::size_t const elements = script_.rarely(64) ? 70'000 + script_.byte() : script_.byte();
      std::vector<std::shared_ptr<CollectiveTask>> all;
      for (int rank = 0; rank < ranks_; ++rank) all.push_back(make(rank, kind, elements));
      comms_.run([&](Communicator& comm) -> CoTask<> {
        auto const& mine = all[number(comm.me())];
        co_await mine->run(comm, mine);
      });
    }
  }

 private:
  // Changes some bytes of some messages.
  void change(View<std::uint8_t> bytes) {
    if (bytes.empty() || !script_.rarely(48)) return;
    for (int changes = 1 + script_.byte() % 3; changes > 0; --changes) {
      std::size_t const at = script_.rarely(64) ? script_.number() : script_.byte();
      bytes.data()[at % bytes.size()] = script_.byte();
    }
  }

  std::shared_ptr<CollectiveTask> make(int rank, int kind, std::size_t elements) {
    auto& selector = *selectors_[static_cast<std::size_t>(rank)];
    if (kind == 0) {
      Array<std::int64_t> words(Device::host(), elements);
      for (std::size_t i = 0; i < elements; ++i) words.data()[i] = static_cast<std::int64_t>(i) << script_.byte() % 50;
      return std::make_shared<comm::IntegerAllreduce>(std::move(words));
    }
    if (kind == 1) {
      Array<float> floats(Device::host(), elements);
      for (std::size_t i = 0; i < elements; ++i) floats.data()[i] = static_cast<float>(i);
      return std::make_shared<comm::FloatAllreduce>(selector, std::move(floats), AllreduceOptions{});
    }
    std::size_t const step = 1 + script_.byte();
    std::size_t const given = (elements + step - 1) / step;
    comm::SparseVector vector{elements, Array<std::uint32_t>(Device::host(), given),
                              Array<float>(Device::host(), given)};
    for (std::size_t i = 0; i < given; ++i) {
      vector.indices.data()[i] = static_cast<std::uint32_t>(i * step);
      vector.values.data()[i] = 1;
    }
    auto const operation = kind == 2 ? CollectiveKind::kSumSparse : CollectiveKind::kScatterSparse;
    return std::make_shared<comm::SparseVectorAllreduce>(selector, operation, std::move(vector), AllreduceOptions{});
  }

  Script& script_;
  int ranks_;
  test::MemoryCommunicators comms_;
  std::vector<std::unique_ptr<comm::Selector>> selectors_;
};

void read_header(std::string const& bytes) {
  try {
    if (encode(comm::decode_header(bytes)) != bytes) std::abort();
  } catch (comm::SerializationError const&) {  // rejected
  }
}

}  // namespace
}  // namespace gpups::fuzz

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace gpups;
  fuzz::read_header(std::string(reinterpret_cast<char const*>(data), size));
  fuzz::Script script(data, size);
  try {
    fuzz::Sums(script).run_some();
  } catch (PeerError const&) {               // the sender of invalid data is named
  } catch (std::logic_error const& error) {  // a rank waits for a message that no rank sends
    if (typeid(error) != typeid(std::logic_error)) throw;
  }
  return 0;
}
