// SPDX-License-Identifier: Apache-2.0
#include "comm/collective/header.hpp"

#include <utility>

#include "comm/wire.hpp"

namespace gpups::comm {
namespace {

constexpr std::uint8_t kHasSignature = 1, kHasItem = 2;
constexpr std::size_t kNumbersBytesMax = 1 + (1 + 8 + 8) + (8 + 8 + 8);

Signature signature_in(Reader& reader) {
  Signature signature;
  auto const operation = reader.get<std::uint8_t>();
  if (operation >= kOperations) throw WireError("a collective of unknown kind");
  signature.operation = static_cast<Operation>(operation);
  signature.elements = reader.get<std::uint64_t>();
  if (signature.elements > kSumElementsMax) throw WireError("an array to sum has more elements than one may");
  signature.how = std::string(reader.get_text());
  if (signature.how.size() > kHowBytesMax) throw WireError("a collective has an algorithm without a name");
  return signature;
}

Header::Item item_in(Reader& reader) {
  Header::Item item{.index = reader.get<std::uint64_t>(), .size = reader.get<std::uint64_t>()};
  item.bytes = std::string(reader.get_text());
  bool const inside = item.bytes.size() == item.size && item.size <= kInlineBytesMax;
  if (!inside && !item.bytes.empty()) throw WireError("a message of a collective has another size than it says");
  return item;
}

}  // namespace

bool is_short(int ranks, std::size_t bytes) {
  constexpr std::size_t kSentMax = std::size_t{16} << 10;  // by a rank, in all
  return bytes <= kInlineBytesMax && bytes * (static_cast<std::size_t>(ranks) - 1) <= kSentMax;
}

std::string encode(Header const& header) {
  std::size_t const text = (header.signature ? header.signature->how.size() : 0);
  Writer writer(kNumbersBytesMax + text + (header.item ? header.item->bytes.size() : 0));
  writer.put<std::uint8_t>(
      static_cast<std::uint8_t>((header.signature ? kHasSignature : 0) | (header.item ? kHasItem : 0)));
  if (header.signature) {
    writer.put<std::uint8_t>(static_cast<std::uint8_t>(header.signature->operation));
    writer.put<std::uint64_t>(header.signature->elements);
    writer.put_text(header.signature->how);
  }
  if (header.item) {
    writer.put<std::uint64_t>(header.item->index);
    writer.put<std::uint64_t>(header.item->size);
    writer.put_text(header.item->bytes);
  }
  return writer.take();
}

Header decode_header(std::string_view bytes) {
  Reader reader(bytes);
  Header header;
  auto const has = reader.get<std::uint8_t>();
  if (has == 0 || has > (kHasSignature | kHasItem)) throw WireError("a header of a collective that says nothing");
  if ((has & kHasSignature) != 0) header.signature = signature_in(reader);
  if ((has & kHasItem) != 0) header.item = item_in(reader);
  reader.end();
  return header;
}

}  // namespace gpups::comm
