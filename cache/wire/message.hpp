// SPDX-License-Identifier: Apache-2.0
// The messages of a Store between ranks: small headers, which announce the bulk data that follow as sections.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gpups/types.hpp"
#include "kernels/placement/row_owners.hpp"

namespace gpups::cache {

// Maximum number of samples of a rank in a step. Sums over all ranks fit in 63 bits.
inline constexpr std::uint64_t kSamplesMax = std::uint64_t{1} << 40;

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

// Intents, or forwards, and the number of bytes of the keys of all of them: plain keys, if the schema says so
// (cache/protocol/schema_check.hpp), else in the format of cache/wire/key_coding.hpp.
struct Intents {
  std::vector<Intent> batches{};
  std::uint64_t key_bytes = 0;
  bool operator==(Intents const&) const = default;
};
struct Forwards {
  std::vector<Forward> batches{};
  std::uint64_t key_bytes = 0;
  bool operator==(Forwards const&) const = default;
};
// Routes, and the number of bytes of the columns of all of them.
struct Routes {
  std::vector<Route> batches{};
  std::uint64_t bytes = 0;
  bool operator==(Routes const&) const = default;
};

// The report of a rank about its step, or the combined report of all ranks.
struct StepReport {
  std::uint64_t samples = 0;
  std::uint32_t signal = 0;  // bits of Store::advance_clock()
  std::string rejection{};   // why the step must not be applied, or empty
  bool operator==(StepReport const&) const = default;
};

// -- messages --

// The end of a step: gradients for rows of the receiver, and intents, forwards and routes.
struct GradientPhase {
  Clock clock{};
  StepReport report{};
  std::vector<GradientBytes> gradients{};  // one element for each part of the list of rows
  std::vector<FlushedList> flushed{};
  Intents intents{};
  Forwards forwards{};
  Routes routes{};
  bool operator==(GradientPhase const&) const = default;
};

// After the update: values that the receiver reads in the next step, and rows that move to it.
struct RefreshPhase {
  Clock clock{};
  std::uint64_t parts = 0;            // number of parts of the list of rows whose values follow
  std::vector<std::uint64_t> sent{};  // number of rows in each value section; empty: every section has all rows
  // Of the rows that move to the receiver, the number of those that are sent, by part: rows that exist or wait for
  // admission; empty: none move.
  std::vector<std::uint64_t> moved_sent{};
  bool operator==(RefreshPhase const&) const = default;
};

// Keys of a batch that was announced too late for a refresh phase. They are in the format of
// cache/wire/key_coding.hpp, without a dictionary.
struct LateFetch {
  std::uint64_t id = 0;  // numbers the late fetches of the sender
  Intent intent{};
  std::uint64_t key_bytes = 0;
  bool operator==(LateFetch const&) const = default;
};

// From the home of rows to their owner: the keys of a late fetch, in the same format.
struct LateForward {
  std::uint64_t id = 0;          // of the late fetch
  std::uint64_t forward_id = 0;  // numbers the late forwards of the sender
  Forward forward{};
  std::uint64_t key_bytes = 0;
  bool operator==(LateForward const&) const = default;
};

// The values of the keys of a late fetch and, from their home, the route.
struct LateFetchReply {
  Clock clock{};
  std::uint64_t id = 0;
  std::vector<std::uint64_t> sent{};  // as in a RefreshPhase
  Routes routes{};                    // at most one
  bool operator==(LateFetchReply const&) const = default;
};

// Bytes of a rank for another one in a gather; see cache/protocol/requests/gathers.hpp. If there are many, several of
// these messages follow one another.
struct GatherPart {
  std::uint64_t id = 0;  // number of the gather
  std::string call{};    // the collective call that it belongs to, such as "size(table 'users')"
  std::string bytes{};
  bool more = false;  // more bytes follow
  bool operator==(GatherPart const&) const = default;
};

// What a request for rows asks for; see RowRequest.
enum class RowRequestKind {
  kLookup,  // values and found marks
  kAssign,  // sets values
  kErase,   // ends rows
  kTake,    // values, found marks and words: the rows, which their owner drops; see TableShard::wait_take()
  kReturn,  // tells homes that rows are not away any more, because they ended
  kWhere,   // words: the owner, the reason as a number, and the low and the high half of the first step there
};
// A request for rows, or to change them. The keys follow.
struct RowRequestHeader {
  RowRequestKind kind{};
  Clock clock{};  // the step before which rows are read
  std::uint64_t id = 0;
  TableId table{};
  std::uint64_t keys = 0;  // number of keys
  bool operator==(RowRequestHeader const&) const = default;
};
// Its reply. The values, found marks and words of the kind follow.
struct RowReplyHeader {
  RowRequestKind kind{};
  std::uint64_t id = 0;
  bool operator==(RowReplyHeader const&) const = default;
};

// The first message: the table options, see cache/protocol/schema_check.hpp.
struct SchemaMessage {
  std::string bytes{};
  bool operator==(SchemaMessage const&) const = default;
};

using Message = std::variant<GradientPhase, RefreshPhase, LateFetch, LateForward, LateFetchReply, GatherPart,
                             RowRequestHeader, RowReplyHeader, SchemaMessage>;

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
// Maximum number of bytes of GatherPart::call.
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
