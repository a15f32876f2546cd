// SPDX-License-Identifier: Apache-2.0
// A rank whose actions a script chooses. It can follow the protocol, to reach deep states, and deviate from it in every
// field and size.
#pragma once

#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cache/protocol/round/row_bodies.hpp"
#include "cache/wire/key_dictionary.hpp"
#include "cache/wire/received_sums.hpp"
#include "comm/collectives/collective_header.hpp"
#include "gpups/array.hpp"
#include "gpups/table.hpp"
#include "tests/fuzz/script.hpp"
#include "tests/support/raw_peer.hpp"

namespace gpups::fuzz {

inline constexpr std::size_t kDims[] = {2, 20, 5};  // of the tables
inline constexpr std::uint32_t kAdmissionCount[] = {1, 2, 1};
inline constexpr RowCompression kCompressions[] = {{}, {}, {.codec = RowCodec::kInt8, .filter = {.age_max = 2}}};
inline constexpr std::size_t kDictionaryKeys = 6;
inline constexpr std::uint64_t kBytesMax = 1 << 16;  // of one transfer
inline constexpr DataType kValues[] = {DataType::kFloat, DataType::kBFloat16, DataType::kFloat};

// Returns the options of a table. `table` may be an unknown one.
inline TableOptions options_of(TableId table) {
  std::size_t const t = number(table) % std::size(kDims);
  return {.name = std::string(1, static_cast<char>('a' + t)),
          .dim = kDims[t],
          .admission_count = kAdmissionCount[t],
          .value_type = kValues[t],
          .gradient_compression = kCompressions[t],
          .refresh_compression = kCompressions[t],
          .dictionary_keys = kDictionaryKeys};
}

inline constexpr std::uint64_t kMyRank = 1;
inline std::uint64_t word(Clock clock) { return static_cast<std::uint64_t>(number(clock)); }
inline std::size_t dim_of(TableId table) { return kDims[number(table) % std::size(kDims)]; }
inline bool counts_occurrences(TableId table) { return options_of(table).admission_count > 1; }
// Returns the bytes of rows of floats, with padding.
inline std::size_t float_bytes(TableId table, std::size_t rows) {
  return rows * row_stride(dim_of(table)) * sizeof(float);
}

// A message of the store, or an encoded header of a collective, whose sequence number is `id`.
struct EncodedHeader {
  std::uint64_t id = 0;
  std::string bytes{};
};
using AnyMessage = std::variant<cache::Message, EncodedHeader>;

// The kinds of messages have numbers in scripts: those of the protocol, and one for headers of collectives.
inline constexpr int kKinds = 20;
inline constexpr std::uint64_t kCollectiveKind = 11;
// Returns the number of a kind in the protocol of the store.
inline std::uint64_t kind_of(std::uint64_t choice) { return choice > kCollectiveKind ? choice - 1 : choice; }
AnyMessage empty_message(std::uint64_t choice);

class ScriptedPeer {
 public:
  ScriptedPeer(test::RawPeer& wires, Script& script) : wires_(wires), script_(script) {}

  static constexpr std::uint8_t kActions = 16;
  void act(std::uint8_t action);
  // Does what rank 0 waits for, correctly. Returns false if there is nothing to do.
  bool cooperate();
  bool cooperates() const { return cooperates_; }

 private:
  bool receive_all();  // returns true if data have been received
  void note(cache::GradientPhase const& message);
  void note(cache::RefreshPhase const& message);
  void note(cache::LateFetch const& message);
  void note(cache::LateForward const&) {}  // the store of this test moves no rows
  void note(cache::LateFetchReply const& message);
  void note(cache::GatherPart const& message);
  void note(cache::RowRequestHeader const& message);
  void note(cache::RowReplyHeader const& message);
  void note(cache::SchemaMessage const&) {}
  void note_intent(cache::Intent const& intent) { requested_[number(intent.clock)] = intent; }
  void take_gradients(cache::GradientPhase const& message);
  void take_values(cache::Intent const& intent, cache::Section section, std::int64_t clock,
                   std::vector<std::uint64_t> const& sent);

  void send(AnyMessage message);
  void send_data(std::uint64_t tag, std::size_t bytes);
  void send_any_bytes();
  void send_any_data();
  void send_bytes(std::uint64_t tag, std::vector<std::uint8_t> bytes);
  void send_values(cache::Intent const& intent, cache::Section section, std::int64_t clock,
                   std::vector<std::uint64_t> const& sent);
  void send_keys(cache::Section section, std::uint64_t number, std::uint64_t part, std::size_t count);
  std::vector<std::uint8_t> encode_keys(std::vector<cache::Intent> const& batches, bool late);
  std::vector<std::uint8_t> packed_rows(std::size_t rows, std::size_t dim);
  Matrix<std::int64_t> any_sums(std::size_t rows, std::size_t dim);
  std::vector<std::uint8_t> residual_rows(TableId table, std::size_t rows, std::uint64_t& sent);
  struct FlushedRows {
    std::vector<std::uint8_t> keys, sums;
  };
  std::vector<FlushedRows> add_flushed(cache::GradientPhase& message);
  std::vector<std::uint64_t> any_sent(cache::Intent const& intent);
  std::optional<cache::ValueBody> values_of(cache::Intent const& intent, std::vector<std::uint64_t> const& sent);
  void corrupt(AnyMessage& message);
  AnyMessage any_message();
  cache::Intent make_intent(std::int64_t clock);

  void send_in(bool with_intents);
  void send_out();
  void fetch_late();
  void answer();
  void answer(cache::LateFetch const& request);
  void answer(cache::RowRequestHeader const& request);
  void request();
  void gather();
  void sum();
  void send_header(std::uint64_t id, comm::CollectiveHeader const& header);

  test::RawPeer& wires_;
  Script& script_;
  bool cooperates_ = false;  // calls cooperate() whenever rank 0 waits
  bool exact_ = false;       // makes no random changes
  std::int64_t clock_ = 0, received_in_ = -1, received_out_ = -1;
  bool sent_in_ = false;
  // By clock: intents of rank 0 for rows of this rank, and of this rank for rows of rank 0.
  std::map<std::int64_t, cache::Intent> requested_, mine_;
  std::map<std::int64_t, bool> late_fetched_;
  std::map<TableId, cache::KeyEncoder> encoders_;
  Stream stream_{Device::host(), 1};
  std::deque<std::variant<cache::LateFetch, cache::RowRequestHeader>> unanswered_;
  std::map<std::uint64_t, cache::RowRequestHeader> requests_;
  std::string call_;  // of rank 0's last gather
  std::uint64_t gathers_ = 0, gathers_received_ = 0, next_request_ = 0, sums_ = 0;
  std::vector<std::uint64_t> sums_received_;  // number of elements of each
  AnyMessage last_;
};

}  // namespace gpups::fuzz
