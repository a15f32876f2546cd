// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/message.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <type_traits>

#include "cache/wire/key_coding.hpp"
#include "comm/base/serialization.hpp"
#include "kernels/base/check.hpp"
#include "kernels/index/unique_keys.hpp"

namespace gpups::cache {
namespace {

constexpr std::uint32_t kCountMax = 1U << 20;  // of elements of a list

void require(bool fine, char const* what) {
  if (!fine) throw comm::SerializationError(what);
}

// The name of the elements of a list, for errors.
template <class T>
constexpr char const* kNameOfElements = "parts";
template <>
constexpr char const* kNameOfElements<FlushedList> = "lists of residuals";
template <>
constexpr char const* kNameOfElements<Intent> = "intents";
template <>
constexpr char const* kNameOfElements<Forward> = "forwards";
template <>
constexpr char const* kNameOfElements<Route> = "routes";

// Writes or reads the fields that each_field() passes, in the same order: numbers, texts, structs and lists.
class FieldWriter {
 public:
  explicit FieldWriter(comm::Writer& writer) : writer_(writer) {}

  template <class... T>
  void operator()(T const&... fields) {
    (write(fields), ...);
  }

 private:
  template <class T>
  void write(T const& field) {
    each_field(*this, field);
  }
  template <comm::SerializedNumber T>
  void write(T const& number) {
    writer_.put<T>(number);
  }
  void write(bool flag) { writer_.put<std::uint8_t>(flag ? 1 : 0); }
  void write(std::string const& text) { writer_.put_text(text); }
  template <class T>
  void write(std::vector<T> const& elements) {
    writer_.put<std::uint32_t>(static_cast<std::uint32_t>(elements.size()));
    for (auto const& element : elements) write(element);
  }

  comm::Writer& writer_;
};

class FieldReader {
 public:
  explicit FieldReader(comm::Reader& reader) : reader_(reader) {}

  template <class... T>
  void operator()(T&... fields) {
    (read(fields), ...);
  }

 private:
  template <class T>
  void read(T& field) {
    each_field(*this, field);
  }
  template <comm::SerializedNumber T>
  void read(T& number) {
    number = reader_.get<T>();
  }
  void read(RowRole& role) {
    role = reader_.get<RowRole>();
    require(role <= RowRole::kMove, "a role of rows does not exist");
  }
  void read(bool& flag) {
    auto const byte = reader_.get<std::uint8_t>();
    require(byte <= 1, "a flag is neither 0 nor 1");
    flag = byte == 1;
  }
  void read(std::string& text) { text = std::string(reader_.get_text()); }
  template <class T>
  void read(std::vector<T>& elements) {
    auto const n = reader_.get<std::uint32_t>();
    if (n > kCountMax) throw comm::SerializationError(std::string("a message has too many ") + kNameOfElements<T>);
    for (std::uint32_t i = 0; i < n; ++i) read(elements.emplace_back());
  }

  comm::Reader& reader_;
};

// T is Struct or, for a writer, Struct const.
template <class T, class Struct>
concept Is = std::is_same_v<std::remove_const_t<T>, Struct>;

void each_field(auto& fields, Is<IntentPart> auto& part) { fields(part.table, part.keys); }
void each_field(auto& fields, Is<Intent> auto& batch) { fields(batch.clock, batch.parts); }
void each_field(auto& fields, Is<Forward> auto& batch) { fields(batch.reader, batch.role, batch.intent); }
void each_field(auto& fields, Is<RoutePart> auto& part) { fields(part.away, part.moves); }
void each_field(auto& fields, Is<Route> auto& batch) { fields(batch.clock, batch.parts); }
void each_field(auto& fields, Is<GradientBytes> auto& part) { fields(part.sums, part.occurrences, part.sent_rows); }
void each_field(auto& fields, Is<FlushedList> auto& list) {
  fields(list.table, list.rows, list.key_bytes, list.bytes, list.exact);
}
void each_field(auto& fields, Is<Intents> auto& intents) { fields(intents.batches, intents.key_bytes); }
void each_field(auto& fields, Is<Forwards> auto& forwards) { fields(forwards.batches, forwards.key_bytes); }
void each_field(auto& fields, Is<Routes> auto& routes) {
  fields(routes.batches);
  if (!routes.batches.empty()) fields(routes.bytes);
}
void each_field(auto& fields, Is<StepReport> auto& report) { fields(report.samples, report.signal, report.rejection); }

void each_field(auto& fields, Is<GradientPhase> auto& message) {
  fields(message.clock, message.report, message.gradients, message.flushed, message.intents, message.forwards,
         message.routes);
}
void each_field(auto& fields, Is<RefreshPhase> auto& message) {
  fields(message.clock, message.parts, message.sent, message.moved_sent);
}
// The clock of a late fetch is sent twice, and its batch as a list.
void each_field(auto& fields, Is<LateFetch> auto& message) {
  Clock clock = message.intent.clock;
  std::uint32_t batches = 1;
  fields(clock, message.id, batches, message.intent, message.key_bytes);
  require(clock == message.intent.clock && batches == 1, "a late fetch without its keys");
}
void each_field(auto& fields, Is<LateForward> auto& message) {
  Clock clock = message.forward.intent.clock;
  std::uint32_t batches = 1;
  fields(clock, message.id, message.forward_id, batches, message.forward, message.key_bytes);
  require(clock == message.forward.intent.clock && batches == 1, "a forwarded late fetch without its keys");
}
void each_field(auto& fields, Is<LateFetchReply> auto& message) {
  fields(message.clock, message.id, message.sent, message.routes);
}
void each_field(auto& fields, Is<GatherPart> auto& message) {
  fields(message.id, message.call, message.bytes, message.more);
}
void each_field(auto& fields, Is<RowRequestHeader> auto& message) {
  fields(message.clock, message.id, message.table, message.keys);
}
void each_field(auto& fields, Is<RowReplyHeader> auto& message) { fields(message.id); }
void each_field(auto& fields, Is<SchemaMessage> auto& message) { fields(message.bytes); }

// Returns an empty message of each kind. The index of a kind is its number in the protocol, the first byte.
auto const& message_kinds() {
  using enum RowRequestKind;
  using Request = RowRequestHeader;
  using Reply = RowReplyHeader;
  static std::array<Message, 19> const kinds{GradientPhase{}, RefreshPhase{},   LateFetch{},    LateFetchReply{},
                                             GatherPart{},    Request{kLookup}, Reply{kLookup}, Request{kAssign},
                                             Reply{kAssign},  Request{kErase},  Reply{kErase},  SchemaMessage{},
                                             LateForward{},   Request{kTake},   Reply{kTake},   Request{kReturn},
                                             Reply{kReturn},  Request{kWhere},  Reply{kWhere}};
  return kinds;
}

bool have_same_kind(Message const& one, Message const& other) {
  auto const request = [](auto const& message) {
    if constexpr (requires { message.kind; }) return message.kind;
    return RowRequestKind{};
  };
  return one.index() == other.index() && std::visit(request, one) == std::visit(request, other);
}

// -- limits --

std::uint64_t bytes_max_of(Intent const& batch) {
  require(batch.parts.size() <= kPartsMax, "a batch has too many parts");
  std::uint64_t bytes = 0;
  for (auto const& part : batch.parts) {
    require(part.keys <= kernels::kUniqueKeysMax, "a part of a batch has too many keys");
    bytes += key_bytes_max(part.keys);
  }
  return bytes;
}
std::uint64_t bytes_max_of(Forward const& batch) { return bytes_max_of(batch.intent); }

void check_keys(auto const& batches, std::uint64_t key_bytes) {
  std::uint64_t bytes_max = 0;
  for (auto const& batch : batches) bytes_max += bytes_max_of(batch);
  require(key_bytes <= bytes_max, "a message has more bytes of keys than its batches can need");
}

void check_routes(Routes const& routes) {
  for (auto const& route : routes.batches) require(route.parts.size() <= kPartsMax, "a route has too many parts");
}
void check_sent(std::vector<std::uint64_t> const& sent) {
  require(sent.size() <= kPartsMax, "a message counts the rows of more sections than a batch can have parts");
}
void check_sections(std::uint64_t sections) {
  require(sections <= kPartsMax, "a message announces more sections than a batch can have parts");
}
void check_id(std::uint64_t id) { require(id < kIdEnd, "a request has a number that is too large for tags"); }

void check_limits(GradientPhase const& message) {
  check_sections(message.gradients.size());
  require(message.flushed.size() <= kPartsMax, "a message has too many lists of residuals");
  for (auto const& flushed : message.flushed) {
    require(flushed.rows >= 1 && flushed.rows <= kernels::kUniqueKeysMax,
            "a list of residuals has no rows, or too many");
    require(flushed.key_bytes <= key_bytes_max(flushed.rows),
            "a list of residuals has more bytes of keys than its rows can need");
  }
  require(message.report.samples <= kSamplesMax, "a step has too many samples");
  check_keys(message.intents.batches, message.intents.key_bytes);
  check_keys(message.forwards.batches, message.forwards.key_bytes);
  check_routes(message.routes);
}
void check_limits(RefreshPhase const& message) {
  check_sections(message.parts);
  check_sent(message.sent);
  require(message.moved_sent.size() <= kPartsMax, "a message moves rows of more sections than a batch can have parts");
}
void check_limits(LateFetch const& message) {
  check_id(message.id);
  check_keys(std::span(&message.intent, 1), message.key_bytes);
}
void check_limits(LateForward const& message) {
  check_id(message.id);
  check_id(message.forward_id);
  check_keys(std::span(&message.forward, 1), message.key_bytes);
}
void check_limits(LateFetchReply const& message) {
  check_id(message.id);
  check_sent(message.sent);
  check_routes(message.routes);
}
void check_limits(GatherPart const& message) {
  check_id(message.id);
  require(message.call.size() <= kCallBytesMax, "the text of a collective call is too long");
  require(!message.more || !message.bytes.empty(), "a part of a gather is empty, but not the last");
}
void check_limits(RowRequestHeader const& message) {
  check_id(message.id);
  require(message.keys <= kernels::kUniqueKeysMax, "a request has too many keys");
}
void check_limits(RowReplyHeader const& message) { check_id(message.id); }
void check_limits(SchemaMessage const&) {}

}  // namespace

std::string encode(Message const& message) {
  auto const& kinds = message_kinds();
  auto const kind =
      std::find_if(kinds.begin(), kinds.end(), [&](Message const& one) { return have_same_kind(one, message); });
  GPUPS_ASSERT(kind != kinds.end());
  comm::Writer writer(128);  // most messages are shorter
  writer.put<std::uint8_t>(static_cast<std::uint8_t>(kind - kinds.begin()));
  FieldWriter fields(writer);
  std::visit([&](auto const& one) { each_field(fields, one); }, message);
  return writer.take();
}

Message decode(std::string_view bytes) {
  comm::Reader reader(bytes);
  auto const kind = reader.get<std::uint8_t>();
  require(kind < message_kinds().size(), "a message of unknown kind");
  Message message = message_kinds()[kind];
  FieldReader fields(reader);
  std::visit([&](auto& one) { each_field(fields, one); }, message);
  reader.end();
  return message;
}

void check_fields(Message const& message) {
  std::visit([](auto const& one) { check_limits(one); }, message);
}

// A tag has 4 bits for the section, 12 for the part and 44 for the number: comm::kTagBits together.
std::uint64_t tag(Section section, std::uint64_t number, std::uint64_t part) {
  return static_cast<std::uint64_t>(section) << 56 | (part & 0xFFF) << 44 | (number & (kIdEnd - 1));
}

std::uint64_t tag_of_moved_rows(Clock step) {
  return tag(Section::kValues, static_cast<std::uint64_t>(number(step)), 1);
}

bool is_of_moved_rows(std::uint64_t tag) { return section_of(tag) == Section::kValues && (tag >> 44 & 0xFFF) == 1; }

Section section_of(std::uint64_t tag) { return static_cast<Section>(tag >> 56); }

}  // namespace gpups::cache
