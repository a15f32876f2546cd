// SPDX-License-Identifier: Apache-2.0
// What ranks tell each other: small headers, which say what bulk data follows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpups/types.hpp"

namespace gpups::cache {

// Of a rank in a step: sums over all ranks fit 63 bits.
inline constexpr std::uint64_t kSamplesMax = std::uint64_t{1} << 40;

enum class MessageKind : std::uint8_t {
  kGradientPhase,   // end of a step: gradients for rows of the receiver, keys that will be read
  kRefreshPhase,    // after the update: values that the receiver reads next
  kLateFetch,       // keys that are read now and were announced too late to come with kRefreshPhase
  kLateFetchReply,  // their values
  kGather,          // a rank's piece of wait_allgather
  kLookup,          // keys to read, now
  kLookupReply,     // their values, and whether they exist
  kAssign,          // keys and values to set
  kAssignReply,     // they are set
  kErase,           // keys to forget
  kEraseReply,      // they do not exist any more
  kSchema,          // the first one: what the tables are, see schema_check.hpp
};

// Keys of one part of a batch that the sender will read, and the receiver owns.
struct IntentPart {
  TableId table{};
  std::uint64_t keys = 0;
  bool operator==(IntentPart const&) const = default;
};

// A batch that the sender announces to an owner. The order in which its keys travel is the order in which the owner
// will send their values, and in which it will receive their gradients: neither names a key again. Where rows share
// scales (cache/row_format.hpp), it is that of the keys' values instead.
struct Intent {
  Clock clock{};
  std::vector<IntentPart> parts;
  bool operator==(Intent const&) const = default;
};

// Bytes of the sums of a part of a batch, and of the counts of its occurrences, which only some tables send. Where a
// table holds gradients back, the rows that the former are of; else 0.
struct GradientBytes {
  std::uint64_t sums = 0, occurrences = 0, sent = 0;
  bool operator==(GradientBytes const&) const = default;
};

// Rows of a table whose gradients come beside those of a batch: the sender has held them back. Keys go as
// cache/key_coding.hpp has them, by the slots that they have once this message's batches are announced; sums follow in
// the order of the keys' values.
struct FlushedList {
  TableId table{};
  std::uint64_t rows = 0;
  std::uint64_t key_bytes = 0;
  std::uint64_t bytes = 0;  // of their sums
  bool exact = false;       // as whole sums, whatever the table's codec is
  bool operator==(FlushedList const&) const = default;
};

struct Message {
  MessageKind kind{};
  Clock clock{};                         // kGradientPhase, kRefreshPhase, kLateFetch, kLateFetchReply: of the step
  std::uint64_t id = 0;                  // kGather: its number; of a request, and of its answer
  std::uint64_t samples = 0;             // kGradientPhase: of the sender in the step
  std::uint32_t signal = 0;              // kGradientPhase: bits that the application raised
  std::string error;                     // kGradientPhase: why the step must be rejected; empty where it is fine
  std::uint64_t parts = 0;               // kRefreshPhase: value sections; one for each part announced
  std::vector<GradientBytes> gradients;  // kGradientPhase: likewise
  std::vector<FlushedList> flushed;      // kGradientPhase: two sections for each, keys and sums
  // kRefreshPhase, kLateFetchReply: rows in each value section; none where all have all rows.
  std::vector<std::uint64_t> sent;
  std::vector<Intent> intents;  // kGradientPhase: new ones, kLateFetch: the one that is late
  std::uint64_t key_bytes = 0;  // of all their keys, as cache/key_coding.hpp has them
  TableId table{};              // kLookup, kAssign, kErase
  std::uint64_t keys = 0;       // likewise
  std::string bytes;            // kGather: the piece, kSchema: the tables
  bool operator==(Message const&) const = default;
};

std::string encode(Message const& message);
// Throws comm::WireError for bytes that are not a message.
Message decode(std::string_view bytes);
// Throws comm::WireError where a message of its kind has no such field, or where a number cannot be what it stands for.
void check_fields(Message const& message);

// How many steps ahead of the owner's own a batch may be announced (a rank announces half as many, since its owners may
// be behind), and how many parts a rank may have announced to
// an owner that are not used yet; parts of one batch, which tags number with 12 bits.
inline constexpr std::int64_t kStepsAheadMax = std::int64_t{1} << 20;
inline constexpr std::size_t kPartsAheadMax = std::size_t{1} << 20;
inline constexpr std::size_t kPartsMax = 4096;
// Numbers of requests and gathers, and steps, are below this: tags have 44 bits for them.
inline constexpr std::uint64_t kIdEnd = std::uint64_t{1} << 44;

// What a bulk transfer is for: the tag that both sides give it.
enum class Section : std::uint8_t {
  kGradients,
  kValues,
  kKeys,
  kLateFetchKeys,
  kLateFetchValues,
  kRequestKeys,
  kRequestValues,
  kRequestFound,
  kFlushedKeys,
  kFlushedSums,
  kOccurrences  // beside kGradients, of tables that admit rows later: how many entries each key has
};
std::uint64_t tag(Section section, std::uint64_t number, std::uint64_t part);
Section section_of(std::uint64_t tag);

}  // namespace gpups::cache
