// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/message.hpp"

#include "cache/wire/key_coding.hpp"
#include "comm/base/serialization.hpp"
#include "kernels/index/unique_keys.hpp"

namespace gpups::cache {
namespace {

constexpr std::size_t kNumbersBytes = 128;     // upper bound for a message without lists
constexpr std::uint32_t kCountMax = 1U << 20;  // of elements of a list

// Writes or reads the fields of a message in the same order: a field is a number, a text or a list.
class FieldWriter {
 public:
  explicit FieldWriter(comm::Writer& writer) : writer_(writer) {}

  void field(std::uint64_t number) { writer_.put<std::uint64_t>(number); }
  void field(std::uint32_t number) { writer_.put<std::uint32_t>(number); }
  void field(Clock clock) { writer_.put<std::int64_t>(number(clock)); }
  void field(TableId table) { writer_.put<std::uint32_t>(number(table)); }
  void field(Rank rank) { writer_.put<std::uint32_t>(number(rank)); }
  void field(RowRole role) { writer_.put<std::uint8_t>(static_cast<std::uint8_t>(role)); }
  void field(bool flag) { writer_.put<std::uint8_t>(flag ? 1 : 0); }
  void field(std::string const& text) { writer_.put_text(text); }
  template <class T, class Each>
  void list(std::vector<T> const& elements, char const*, Each each) {
    writer_.put<std::uint32_t>(static_cast<std::uint32_t>(elements.size()));
    for (auto const& element : elements) each(element);
  }

 private:
  comm::Writer& writer_;
};

class FieldReader {
 public:
  explicit FieldReader(comm::Reader& reader) : reader_(reader) {}

  void field(std::uint64_t& number) { number = reader_.get<std::uint64_t>(); }
  void field(std::uint32_t& number) { number = reader_.get<std::uint32_t>(); }
  void field(Clock& clock) { clock = Clock{reader_.get<std::int64_t>()}; }
  void field(TableId& table) { table = TableId{reader_.get<std::uint32_t>()}; }
  void field(Rank& rank) { rank = Rank{reader_.get<std::uint32_t>()}; }
  void field(RowRole& role) {
    auto const byte = reader_.get<std::uint8_t>();
    if (byte > static_cast<std::uint8_t>(RowRole::kMove))
      throw comm::SerializationError("a role of rows does not exist");
    role = static_cast<RowRole>(byte);
  }
  void field(bool& flag) {
    auto const byte = reader_.get<std::uint8_t>();
    if (byte > 1) throw comm::SerializationError("a flag is neither 0 nor 1");
    flag = byte == 1;
  }
  void field(std::string& text) { text = std::string(reader_.get_text()); }
  template <class T, class Each>
  void list(std::vector<T>& elements, char const* what, Each each) {
    auto const n = reader_.get<std::uint32_t>();
    if (n > kCountMax) throw comm::SerializationError(std::string("a message has too many ") + what);
    for (std::uint32_t i = 0; i < n; ++i) each(elements.emplace_back());
  }

 private:
  comm::Reader& reader_;
};

// Passes the fields of the message's kind to `fields`. M: Message or Message const.
template <class Fields, class M>
void each_field(Fields& fields, M& message) {
  auto const rows = [&](auto& number) { fields.field(number); };
  auto const intent = [&](auto& one) {
    fields.field(one.clock);
    fields.list(one.parts, "parts", [&](auto& part) {
      fields.field(part.table);
      fields.field(part.keys);
    });
  };
  auto const intents = [&] {
    fields.list(message.intents, "intents", intent);
    fields.field(message.key_bytes);
  };
  auto const forwards = [&] {
    fields.list(message.forwards, "forwards", [&](auto& one) {
      fields.field(one.reader);
      fields.field(one.role);
      intent(one.intent);
    });
    fields.field(message.forward_bytes);
  };
  auto const routes = [&] {
    fields.list(message.routes, "routes", [&](auto& one) {
      fields.field(one.clock);
      fields.list(one.parts, "parts", [&](auto& part) {
        fields.field(part.away);
        fields.field(part.moves);
      });
    });
    if (!message.routes.empty()) fields.field(message.route_bytes);
  };
  auto const sent = [&] { fields.list(message.sent, "parts", rows); };
  switch (message.kind) {
    case MessageKind::kGradientPhase:
      fields.field(message.clock);
      fields.field(message.samples);
      fields.field(message.signal);
      fields.field(message.error);
      fields.list(message.gradients, "parts", [&](auto& part) {
        fields.field(part.sums);
        fields.field(part.occurrences);
        fields.field(part.sent_rows);
      });
      fields.list(message.flushed, "lists of residuals", [&](auto& list) {
        fields.field(list.table);
        fields.field(list.rows);
        fields.field(list.key_bytes);
        fields.field(list.bytes);
        fields.field(list.exact);
      });
      intents();
      forwards();
      return routes();
    case MessageKind::kRefreshPhase:
      fields.field(message.clock);
      fields.field(message.parts);
      sent();
      return fields.list(message.moved_sent, "parts", rows);
    case MessageKind::kLateFetch:
      fields.field(message.clock);
      fields.field(message.id);
      return intents();
    case MessageKind::kLateForward:
      fields.field(message.clock);
      fields.field(message.id);
      fields.field(message.forward_id);
      return forwards();
    case MessageKind::kLateFetchReply:
      fields.field(message.clock);
      fields.field(message.id);
      sent();
      return routes();
    case MessageKind::kGather:
      fields.field(message.id);
      fields.field(message.call);
      return fields.field(message.bytes);
    case MessageKind::kLookup:
    case MessageKind::kAssign:
    case MessageKind::kErase:
    case MessageKind::kClaim:
    case MessageKind::kGrant:
    case MessageKind::kTake:
    case MessageKind::kReturn:
    case MessageKind::kWhere:
      fields.field(message.clock);
      fields.field(message.id);
      fields.field(message.table);
      return fields.field(message.keys);
    case MessageKind::kLookupReply:
    case MessageKind::kAssignReply:
    case MessageKind::kEraseReply:
    case MessageKind::kClaimReply:
    case MessageKind::kGrantReply:
    case MessageKind::kTakeReply:
    case MessageKind::kReturnReply:
    case MessageKind::kWhereReply:
      return fields.field(message.id);
    case MessageKind::kSchema:
      return fields.field(message.bytes);
  }
}

}  // namespace

std::string encode(Message const& message) {
  comm::Writer writer(kNumbersBytes + message.error.size() + message.bytes.size() +
                      message.call.size());  // lists are short
  writer.put<std::uint8_t>(static_cast<std::uint8_t>(message.kind));
  FieldWriter fields(writer);
  each_field(fields, message);
  return writer.take();
}

Message decode(std::string_view bytes) {
  comm::Reader reader(bytes);
  Message message;
  auto const kind = reader.get<std::uint8_t>();
  if (kind > static_cast<std::uint8_t>(MessageKind::kWhereReply))
    throw comm::SerializationError("a message of unknown kind");
  message.kind = static_cast<MessageKind>(kind);
  FieldReader fields(reader);
  each_field(fields, message);
  reader.end();
  return message;
}

void check_fields(Message const& message) {
  auto const require = [](bool fine, char const* what) {
    if (!fine) throw comm::SerializationError(what);
  };
  require(message.parts <= kPartsMax && message.gradients.size() <= kPartsMax,
          "a message announces more sections than a batch can have parts");
  require(message.sent.size() <= kPartsMax, "a message counts the rows of more sections than a batch can have parts");
  require(message.moved_sent.size() <= kPartsMax, "a message moves rows of more sections than a batch can have parts");
  require(message.flushed.size() <= kPartsMax, "a message has too many lists of residuals");
  for (auto const& flushed : message.flushed) {
    require(flushed.rows >= 1 && flushed.rows <= kernels::kUniqueKeysMax,
            "a list of residuals has no rows, or too many");
    require(flushed.key_bytes <= key_bytes_max(flushed.rows),
            "a list of residuals has more bytes of keys than its rows can need");
  }
  require(message.samples <= kSamplesMax, "a step has too many samples");
  require(message.id < kIdEnd && message.forward_id < kIdEnd, "a request has a number that is too large for tags");
  require(message.keys <= kernels::kUniqueKeysMax, "a request has too many keys");
  require(message.call.size() <= kCallBytesMax, "the text of a collective call is too long");
  auto const bytes_max = [&](Intent const& intent) {
    require(intent.parts.size() <= kPartsMax, "a batch has too many parts");
    std::uint64_t bytes = 0;
    for (auto const& part : intent.parts) {
      require(part.keys <= kernels::kUniqueKeysMax, "a part of a batch has too many keys");
      bytes += key_bytes_max(part.keys);
    }
    return bytes;
  };
  std::uint64_t key_bytes = 0, forward_bytes = 0;
  for (auto const& intent : message.intents) key_bytes += bytes_max(intent);
  for (auto const& forward : message.forwards) forward_bytes += bytes_max(forward.intent);
  require(message.key_bytes <= key_bytes && message.forward_bytes <= forward_bytes,
          "a message has more bytes of keys than its batches can need");
  for (auto const& route : message.routes) {
    require(route.parts.size() <= kPartsMax, "a route has too many parts");
  }
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
