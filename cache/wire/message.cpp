// SPDX-License-Identifier: Apache-2.0
#include "cache/wire/message.hpp"

#include "cache/wire/key_coding.hpp"
#include "comm/wire.hpp"
#include "kernels/unique_keys.hpp"

namespace gpups::cache {
namespace {

constexpr std::size_t kNumbersBytes = 128;     // upper bound for a message without lists
constexpr std::uint32_t kCountMax = 1U << 20;  // of intents in a message, and of parts in an intent

std::uint32_t count(comm::Reader& reader, char const* what) {
  auto const n = reader.get<std::uint32_t>();
  if (n > kCountMax) throw comm::WireError(std::string("a message has too many ") + what);
  return n;
}

}  // namespace

std::string encode(Message const& message) {
  comm::Writer writer(kNumbersBytes + message.error.size() + message.bytes.size());  // lists are short
  writer.put<std::uint8_t>(static_cast<std::uint8_t>(message.kind));
  writer.put<std::int64_t>(number(message.clock));
  writer.put<std::uint64_t>(message.id);
  writer.put<std::uint64_t>(message.samples);
  writer.put<std::uint32_t>(message.signal);
  writer.put_text(message.error);
  writer.put<std::uint64_t>(message.parts);
  writer.put<std::uint32_t>(static_cast<std::uint32_t>(message.gradients.size()));
  for (auto const& part : message.gradients) {
    writer.put<std::uint64_t>(part.sums);
    writer.put<std::uint64_t>(part.occurrences);
    writer.put<std::uint64_t>(part.sent);
  }
  writer.put<std::uint32_t>(static_cast<std::uint32_t>(message.flushed.size()));
  for (auto const& flushed : message.flushed) {
    writer.put<std::uint32_t>(number(flushed.table));
    writer.put<std::uint64_t>(flushed.rows);
    writer.put<std::uint64_t>(flushed.key_bytes);
    writer.put<std::uint64_t>(flushed.bytes);
    writer.put<std::uint8_t>(flushed.exact ? 1 : 0);
  }
  writer.put<std::uint32_t>(static_cast<std::uint32_t>(message.sent.size()));
  for (auto const rows : message.sent) writer.put<std::uint64_t>(rows);
  writer.put<std::uint32_t>(static_cast<std::uint32_t>(message.intents.size()));
  for (auto const& intent : message.intents) {
    writer.put<std::int64_t>(number(intent.clock));
    writer.put<std::uint32_t>(static_cast<std::uint32_t>(intent.parts.size()));
    for (auto const& part : intent.parts) {
      writer.put<std::uint32_t>(number(part.table));
      writer.put<std::uint64_t>(part.keys);
    }
  }
  writer.put<std::uint64_t>(message.key_bytes);
  writer.put<std::uint32_t>(number(message.table));
  writer.put<std::uint64_t>(message.keys);
  writer.put_text(message.bytes);
  return writer.take();
}

Message decode(std::string_view bytes) {
  comm::Reader reader(bytes);
  Message message;
  auto const kind = reader.get<std::uint8_t>();
  if (kind > static_cast<std::uint8_t>(MessageKind::kSchema)) throw comm::WireError("a message of unknown kind");
  message.kind = static_cast<MessageKind>(kind);
  message.clock = Clock{reader.get<std::int64_t>()};
  message.id = reader.get<std::uint64_t>();
  message.samples = reader.get<std::uint64_t>();
  message.signal = reader.get<std::uint32_t>();
  message.error = std::string(reader.get_text());
  message.parts = reader.get<std::uint64_t>();
  for (auto parts = count(reader, "parts"); parts > 0; --parts) {
    auto const sums = reader.get<std::uint64_t>(), occurrences = reader.get<std::uint64_t>();
    message.gradients.push_back({sums, occurrences, reader.get<std::uint64_t>()});
  }
  for (auto lists = count(reader, "lists of residuals"); lists > 0; --lists) {
    auto const table = TableId{reader.get<std::uint32_t>()};
    auto const rows = reader.get<std::uint64_t>(), key_bytes = reader.get<std::uint64_t>();
    auto const bytes_of_sums = reader.get<std::uint64_t>();
    auto const exact = reader.get<std::uint8_t>();
    if (exact > 1) throw comm::WireError("a list of residuals is neither exact nor encoded");
    message.flushed.push_back({table, rows, key_bytes, bytes_of_sums, exact == 1});
  }
  for (auto parts = count(reader, "parts"); parts > 0; --parts) message.sent.push_back(reader.get<std::uint64_t>());
  for (auto intents = count(reader, "intents"); intents > 0; --intents) {
    Intent intent{.clock = Clock{reader.get<std::int64_t>()}, .parts = {}};
    for (auto parts = count(reader, "parts"); parts > 0; --parts) {
      auto const table = TableId{reader.get<std::uint32_t>()};
      intent.parts.push_back({table, reader.get<std::uint64_t>()});
    }
    message.intents.push_back(std::move(intent));
  }
  message.key_bytes = reader.get<std::uint64_t>();
  message.table = TableId{reader.get<std::uint32_t>()};
  message.keys = reader.get<std::uint64_t>();
  message.bytes = std::string(reader.get_text());
  reader.end();
  return message;
}

void check_fields(Message const& message) {
  auto const kind = message.kind;
  bool const in = kind == MessageKind::kGradientPhase;
  auto const require = [](bool fine, char const* what) {
    if (!fine) throw comm::WireError(what);
  };
  require(in || message.error.empty(), "a message that does not end a step has a rejection");
  require(in || kind == MessageKind::kLateFetch || message.intents.empty(),
          "a message of this kind must not have intents");
  bool const has_bytes = kind == MessageKind::kGather || kind == MessageKind::kSchema;
  require(has_bytes || message.bytes.empty(), "a message of this kind must not have bytes to gather");
  require(in || message.gradients.empty(), "a message of this kind must not have gradients");
  require(message.parts <= kPartsMax && message.gradients.size() <= kPartsMax,
          "a message announces more sections than a batch can have parts");
  bool const values = kind == MessageKind::kRefreshPhase || kind == MessageKind::kLateFetchReply;
  require(values || message.sent.empty(), "a message of this kind must not have values");
  require(message.sent.size() <= kPartsMax, "a message counts the rows of more sections than a batch can have parts");
  require(in || message.flushed.empty(), "a message of this kind must not have residuals");
  require(message.flushed.size() <= kPartsMax, "a message has too many lists of residuals");
  for (auto const& flushed : message.flushed) {
    require(flushed.rows >= 1 && flushed.rows <= kernels::kUniqueKeysMax,
            "a list of residuals has no rows, or too many");
    require(flushed.key_bytes <= key_bytes_max(flushed.rows),
            "a list of residuals has more bytes of keys than its rows can need");
  }
  require(message.samples <= kSamplesMax, "a step has too many samples");
  require(message.id < kIdEnd, "a request has a number that is too large for tags");
  require(message.keys <= kernels::kUniqueKeysMax, "a request has too many keys");
  std::uint64_t key_bytes = 0;
  for (auto const& intent : message.intents) {
    require(intent.parts.size() <= kPartsMax, "a batch has too many parts");
    for (auto const& part : intent.parts) {
      require(part.keys <= kernels::kUniqueKeysMax, "a part of a batch has too many keys");
      key_bytes += key_bytes_max(part.keys);
    }
  }
  require(message.key_bytes <= key_bytes, "a message has more bytes of keys than its batches can need");
}

// A tag has 4 bits for the section, 12 for the part and 44 for the number: comm::kTagBits together.
std::uint64_t tag(Section section, std::uint64_t number, std::uint64_t part) {
  return static_cast<std::uint64_t>(section) << 56 | (part & 0xFFF) << 44 | (number & (kIdEnd - 1));
}

Section section_of(std::uint64_t tag) { return static_cast<Section>(tag >> 56); }

}  // namespace gpups::cache
