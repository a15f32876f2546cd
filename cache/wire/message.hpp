// SPDX-License-Identifier: Apache-2.0
// The messages of a Store between ranks: small headers, which announce the bulk data that follow as sections.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpups/types.hpp"
#include "kernels/placement/row_owners.hpp"

namespace gpups::cache {

// Maximum number of samples of a rank in a step. Sums over all ranks fit in 63 bits.
inline constexpr std::uint64_t kSamplesMax = std::uint64_t{1} << 40;

// The kinds of messages of the store's channel. The values are part of the protocol.
enum class MessageKind : std::uint8_t {
  kGradientPhase,   // end of a step: gradients for rows of the receiver, and intents, forwards and routes
  kRefreshPhase,    // after the update: values that the receiver reads in the next step, and rows that move to it
  kLateFetch,       // keys of a batch that was announced too late for kRefreshPhase
  kLateFetchReply,  // the values of these keys, and their route
  kGather,          // the bytes of a rank for wait_allgather() or wait_gather_to()
  kLookup,          // keys to look up
  kLookupReply,     // the values of these keys, and whether their rows exist
  kAssign,          // keys and values to set
  kAssignReply,     // the values are set
  kErase,           // keys to erase
  kEraseReply,      // the keys are erased
  kSchema,          // the first message: the table options, see schema_check.hpp
  kLateForward,     // from the home of rows to their owner: the keys of a late fetch
  kClaim,           // requests that move rows, and their replies; see RowRequest
  kClaimReply,
  kGrant,
  kGrantReply,
  kTake,
  kTakeReply,
  kReturn,
  kReturnReply,
  kWhere,
  kWhereReply,
};

// The number of keys of one part of a batch that the sender will read and whose home is the receiver.
struct IntentPart {
  TableId table{};
  std::uint64_t keys = 0;
  bool operator==(IntentPart const&) const = default;
};

// A batch that the sender announces to the home of its keys. The owner of the rows sends their values, and receives
// their gradients, in the ascending order of the keys, so these messages have no keys.
struct Intent {
  Clock clock{};
  std::vector<IntentPart> parts;
  bool operator==(Intent const&) const = default;
};

using kernels::kRowRoles;
using kernels::RowRole;

// The keys of a reader's batch whose rows the receiver owns away from their home, which sends this. Their order is the
// ascending order of the keys; a part without such keys has 0. A batch has at most one forward for each role.
struct Forward {
  Rank reader{};
  RowRole role{};
  Intent intent;
  bool operator==(Forward const&) const = default;
};

// Whether a route has columns of a part: the owners of its rows before the batch's step, as far as one of them is not
// the home; and those in the step, as far as one is another than before.
struct RoutePart {
  bool away = false, moves = false;
  bool operator==(RoutePart const&) const = default;
};
// The owners of the rows of a batch that the receiver has announced, from their home. The columns follow in a section,
// see cache/wire/route_columns.hpp. A home sends no route if it owns all rows before the step and in it.
struct Route {
  Clock clock{};
  std::vector<RoutePart> parts;
  bool operator==(Route const&) const = default;
};

// The gradient sections of a part of a batch: bytes of the sums; bytes of the occurrence counts, 0 for tables without
// admission; and the number of sent rows, 0 for tables without gradient compression.
struct GradientBytes {
  std::uint64_t sums = 0, occurrences = 0, sent_rows = 0;
  bool operator==(GradientBytes const&) const = default;
};

// Flushed residuals of one table, in two sections: the keys in the format of cache/wire/key_coding.hpp, with the slots
// of the key dictionary after the intents of this message are added; and the sums, in ascending order of the keys.
struct FlushedList {
  TableId table{};
  std::uint64_t rows = 0;
  std::uint64_t key_bytes = 0;
  std::uint64_t bytes = 0;  // of the sums
  bool exact = false;       // the sums are sent exactly, not in the table's codec
  bool operator==(FlushedList const&) const = default;
};

// A message of any kind. Fields that the kind does not use are not sent, and have their initial values.
struct Message {
  MessageKind kind{};
  // kGradientPhase, kRefreshPhase, kLateFetch..., kLateForward: the step; requests for rows: the step before which rows
  // are read
  Clock clock{};
  std::uint64_t id = 0;                  // number of the gather, of the request or the reply, or of the late fetch
  std::uint64_t forward_id = 0;          // kLateForward: numbers the late forwards of the sender
  std::uint64_t samples = 0;             // kGradientPhase: samples of the sender in the step
  std::uint32_t signal = 0;              // kGradientPhase: bits of Store::advance_clock()
  std::string error;                     // kGradientPhase: why the step must be rejected; empty: it need not
  std::vector<GradientBytes> gradients;  // kGradientPhase: one element for each part of the list of rows
  std::vector<FlushedList> flushed;      // kGradientPhase: flushed residuals
  std::uint64_t parts = 0;               // kRefreshPhase: number of parts of the list of rows whose values follow
  // kRefreshPhase, kLateFetchReply: number of rows in each value section; empty: every section has all rows
  std::vector<std::uint64_t> sent;
  // kRefreshPhase: of the rows that move to the receiver, the number of those that are sent, by part: rows that exist
  // or wait for admission; empty: none move
  std::vector<std::uint64_t> moved_sent;
  std::vector<Intent> intents;    // kGradientPhase: new intents; kLateFetch: one intent
  std::vector<Forward> forwards;  // kGradientPhase: forwards of intents; kLateForward: one forward
  // Of the keys of all intents, and of all forwards: plain keys, if the schema says so
  // (cache/protocol/schema_check.hpp), else, and always for late fetches, in the format of cache/wire/key_coding.hpp.
  std::uint64_t key_bytes = 0, forward_bytes = 0;
  std::vector<Route> routes;      // kGradientPhase: routes of batches; kLateFetchReply: at most one
  std::uint64_t route_bytes = 0;  // of all routes
  TableId table{};                // requests for rows
  std::uint64_t keys = 0;         // number of keys of a request
  std::string bytes;              // kGather: bytes to gather; kSchema: the table options
  std::string call;               // kGather: the collective call that it belongs to, such as "size(table 'users')"
  bool operator==(Message const&) const = default;
};

// Returns the bytes of a message.
std::string encode(Message const& message);
// Returns the message that encode() has encoded. Throws comm::SerializationError for other bytes.
Message decode(std::string_view bytes);
// Throws comm::SerializationError if a message has a number out of its range.
void check_fields(Message const& message);

// Maximum number of steps by which an announced batch may be ahead of the owner's step. A rank announces at most half
// as many steps ahead, because the owner may be behind.
inline constexpr std::int64_t kStepsAheadMax = std::int64_t{1} << 20;
// Maximum number of parts that a rank may have announced to an owner for steps that are not applied yet.
inline constexpr std::size_t kPartsAheadMax = std::size_t{1} << 20;
// Maximum number of parts of a batch. Tags have 12 bits for the part.
inline constexpr std::size_t kPartsMax = 4096;
// Maximum number of bytes of Message::call.
inline constexpr std::size_t kCallBytesMax = 512;
// Steps and the numbers of requests and gathers are below this limit. Tags have 44 bits for them.
inline constexpr std::uint64_t kIdEnd = std::uint64_t{1} << 44;

// What the data of a bulk transfer are.
enum class Section : std::uint8_t {
  kGradients,  // of one table with gradient compression
  kValues,     // of all parts of a batch; part 1: the rows that move to the reader
  kKeys,
  kLateFetchKeys,
  kLateFetchValues,
  kRequestKeys,
  kRequestValues,
  kRequestFound,
  kFlushedKeys,
  kFlushedSums,
  kGradientBody,  // packed sums and occurrence counts of all parts of a batch
  kForwardKeys,
  kLateForwardKeys,
  kRoutes,
  kLateRoutes,
  kRequestWords  // see RowRequest
};
// Returns the tag of a transfer. number: the step, or the number of a request; part: the part, or the list.
std::uint64_t tag(Section section, std::uint64_t number, std::uint64_t part);
Section section_of(std::uint64_t tag);
// The tag of the rows that move to a rank with a step.
std::uint64_t tag_of_moved_rows(Clock step);
bool is_of_moved_rows(std::uint64_t tag);

}  // namespace gpups::cache
