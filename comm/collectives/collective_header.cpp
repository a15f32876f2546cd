// SPDX-License-Identifier: Apache-2.0
#include "comm/collectives/collective_header.hpp"

#include <fmt/core.h>

#include <utility>

#include "comm/base/serialization.hpp"

namespace gpups::comm {
namespace {

char const* elements_of(CollectiveKind operation) {
  switch (operation) {
    case CollectiveKind::kSumIntegers:
      return "integers";
    case CollectiveKind::kSumFloats:
      return "floats";
    case CollectiveKind::kSumTopK:
      return "elements of gradients";
    default:
      return "sparse floats";
  }
}

constexpr std::uint8_t kHasSignature = 1, kHasItem = 2;
constexpr std::size_t kNumbersBytesMax = 1 + (1 + 8 + 8) + (8 + 8 + 8);

Signature signature_in(Reader& reader) {
  Signature signature;
  auto const operation = reader.get<std::uint8_t>();
  if (operation >= kCollectiveKinds) throw SerializationError("a collective of unknown kind");
  signature.operation = static_cast<CollectiveKind>(operation);
  signature.elements = reader.get<std::uint64_t>();
  if (signature.elements > kSumElementsMax)
    throw SerializationError("the array of a collective has more than 2^32 elements");
  signature.how = std::string(reader.get_text());
  if (signature.how.size() > kHowBytesMax)
    throw SerializationError("the name of the algorithm of a collective is too long");
  return signature;
}

CollectiveHeader::MessagePart item_in(Reader& reader) {
  CollectiveHeader::MessagePart message{.index = reader.get<std::uint64_t>(), .size = reader.get<std::uint64_t>()};
  message.bytes = std::string(reader.get_text());
  bool const is_inline = message.bytes.size() == message.size && message.size <= kInlineBytesMax;
  if (!is_inline && !message.bytes.empty())
    throw SerializationError("a message of a collective does not have the size in its header");
  return message;
}

}  // namespace

char const* name_of(CollectiveKind operation) {
  return operation == CollectiveKind::kScatterSparse ? "reduce-scatter" : "allreduce";
}

std::string describe(Signature const& signature) {
  return fmt::format("sums {} {}{}{}", signature.elements, elements_of(signature.operation),
                     signature.how.empty() ? "" : " by ", signature.how);
}

bool fits_eager(int ranks, std::size_t bytes) {
  constexpr std::size_t kSentMax = std::size_t{16} << 10;  // bytes that a rank sends to all others together
  return bytes <= kInlineBytesMax && bytes * (static_cast<std::size_t>(ranks) - 1) <= kSentMax;
}

std::string encode(CollectiveHeader const& header) {
  std::size_t const text = (header.signature ? header.signature->how.size() : 0);
  Writer writer(kNumbersBytesMax + text + (header.message ? header.message->bytes.size() : 0));
  writer.put<std::uint8_t>(
      static_cast<std::uint8_t>((header.signature ? kHasSignature : 0) | (header.message ? kHasItem : 0)));
  if (header.signature) {
    writer.put<std::uint8_t>(static_cast<std::uint8_t>(header.signature->operation));
    writer.put<std::uint64_t>(header.signature->elements);
    writer.put_text(header.signature->how);
  }
  if (header.message) {
    writer.put<std::uint64_t>(header.message->index);
    writer.put<std::uint64_t>(header.message->size);
    writer.put_text(header.message->bytes);
  }
  return writer.take();
}

CollectiveHeader decode_header(std::string_view bytes) {
  Reader reader(bytes);
  CollectiveHeader header;
  auto const has = reader.get<std::uint8_t>();
  if (has == 0 || has > (kHasSignature | kHasItem))
    throw SerializationError("a header of a collective has no content or unknown content");
  if ((has & kHasSignature) != 0) header.signature = signature_in(reader);
  if ((has & kHasItem) != 0) header.message = item_in(reader);
  reader.end();
  return header;
}

}  // namespace gpups::comm
