// SPDX-License-Identifier: Apache-2.0
// A fixture for messages of a malicious peer: rank 0 is a store, and rank 1 sends any message. Each invalid message
// must cause a PeerError that names rank 1 and the problem, and must not allocate more memory than rank 1's bytes
// justify.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cache/wire/key_dictionary.hpp"
#include "comm/base/serialization.hpp"
#include "gpups/error.hpp"
#include "gpups/store.hpp"
#include "kernels/base/hash.hpp"
#include "tests/support/raw_peer.hpp"

namespace gpups::test {

using cache::GatherPart;
using cache::GradientPhase;
using cache::Intent;
using cache::LateFetch;
using cache::LateFetchReply;
using cache::LateForward;
using cache::Message;
using cache::RefreshPhase;
using cache::RowReplyHeader;
using cache::RowRequestHeader;
using cache::RowRequestKind;
using cache::SchemaMessage;
using cache::Section;
using cache::tag;

inline constexpr std::uint64_t kHuge = (std::uint64_t{1} << 28) - 1;  // the largest number of keys in a header
inline constexpr auto kLast = std::numeric_limits<std::int64_t>::max();
inline constexpr auto kFirst = std::numeric_limits<std::int64_t>::min();

// Returns the bytes of a rank in a collective call: an error, or a result if the error is empty.
inline std::string rank_result(std::string const& error, std::string const& result) {
  comm::Writer writer;
  writer.put_text(error);
  writer.put_text(result);
  return writer.take();
}
// Lets the peer send body(i) in gather i, without an error.
inline void answer_gathers(RawPeer& peer, std::function<std::string(std::uint64_t)> body) {
  peer.on_idle = [&peer, body = std::move(body), gathers = std::uint64_t{0}]() mutable {
    auto const from_rank_0 = peer.receive();
    auto const* const part = from_rank_0 ? std::get_if<GatherPart>(&*from_rank_0) : nullptr;
    if (part == nullptr) return from_rank_0.has_value();
    auto const bytes = rank_result("", body(gathers));
    peer.send(GatherPart{.id = gathers++, .call = part->call, .bytes = bytes});
    return true;
  };
}

class HostilePeer : public testing::Test {
 protected:
  explicit HostilePeer(PlacementPolicy policy = PlacementPolicy::kStatic)
      : group_(peer_.group()),
        store_(std::in_place, group_, StoreOptions{.threads = 1, .placement = policy, .placement_bytes_min = 0}) {
    table_ = store_->add_table({.name = "t", .dim = 4});
    stream_.emplace(store_->make_stream());
  }

  // Makes progress of the store until nothing happens. Returns the text of the error, or an empty string.
  std::string progress() { return progress(*store_); }
  std::string progress(Store& store) {
    return error_of([&] {
      auto stream = store.make_stream();
      for (int i = 0; i < 3; ++i) store.scan(stream, table_, [](auto, auto) {});
      store.wait_applied();
    });
  }
  template <class Call>
  std::string error_of(Call const& call) {
    std::size_t const before = memory::usage(Device::host()).bytes_peak;
    std::string text;
    try {
      call();
    } catch (PeerError const& error) {
      EXPECT_EQ(error.peer(), Rank{1});
      EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos) << error.what();
      text = error.what();
    }
    EXPECT_LT(memory::usage(Device::host()).bytes_peak, before + (std::size_t{64} << 20));
    return text;
  }
  // Expects that the store's next progress throws an error with these words.
  void expect_rejected(char const* words) {
    auto const text = progress();
    EXPECT_NE(text.find(words), std::string::npos) << "'" << words << "' is not in: '" << text << "'";
  }

  static Intent intent(std::int64_t clock, std::uint64_t keys, TableId table = TableId{0}) {
    return {Clock{clock}, {{table, keys}}};
  }
  static GradientPhase in(std::int64_t clock, std::vector<Intent> intents = {}, std::uint64_t key_bytes = 0) {
    return {.clock = Clock{clock}, .intents = {std::move(intents), key_bytes}};
  }
  // Returns the encoding of new keys. numbers: ascending.
  static std::vector<std::uint8_t> new_keys(std::vector<std::uint64_t> const& numbers) {
    std::vector<Key> keys;
    for (std::uint64_t const key : numbers) keys.push_back(Key{key});
    std::vector<std::uint8_t> bytes;
    cache::KeyEncoder(0).encode(View<Key const>(keys), bytes);
    return bytes;
  }
  static LateFetch late_fetch(std::int64_t clock, std::uint64_t keys, std::uint64_t key_bytes = 0) {
    return {.id = static_cast<std::uint64_t>(clock), .intent = intent(clock, keys), .key_bytes = key_bytes};
  }
  // Ends the store's step, so that the store handles messages of the gradient phase.
  void end_step() { store_->advance_clock(); }

  // Prepares a batch of one key that rank 1 owns.
  PreparedBatch read_from_peer(Clock clock) {
    std::uint64_t key = 0;
    while (kernels::home_of(Key{key}, 2) != 1) ++key;
    auto const keys = to_device(*stream_, std::vector{Key{key}});
    TableBatch const batch{.table = table_, .keys = View<Key const>(keys)};
    return store_->prepare(*stream_, clock, {&batch, 1}, 1);
  }
  void push_zeros(PreparedBatch const& batch) {
    Matrix<float> const sources(Device::host(), 1, 4);
    memory::fill_bytes(*stream_, sources.view().data(), 0, sources.view().flat().bytes());
    TableGradients const gradients{.sources = sources};
    store_->push(*stream_, batch, {&gradients, 1});
  }

  RawPeer peer_;
  Group group_;  // rank 0's
  std::optional<Store> store_;
  std::optional<Stream> stream_;
  TableId table_{};
};

}  // namespace gpups::test
