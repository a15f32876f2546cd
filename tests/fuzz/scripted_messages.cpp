// SPDX-License-Identifier: Apache-2.0
// The random changes of the messages that a scripted peer sends.
#include "kernels/base/overloaded.hpp"
#include "tests/fuzz/scripted_peer.hpp"
#include "tests/support/empty_messages.hpp"

namespace gpups::fuzz {
namespace {

using cache::Intent;

// The fields of a message of any layout. Null: the layout has no such field.
struct AnyFields {
  Clock* clock = nullptr;
  std::uint64_t *id = nullptr, *parts = nullptr, *keys = nullptr, *key_bytes = nullptr;
  TableId* table = nullptr;
  std::string* bytes = nullptr;
  cache::StepReport* report = nullptr;
  std::vector<cache::GradientBytes>* gradients = nullptr;
  std::vector<std::uint64_t>* moved_sent = nullptr;
  cache::Intents* intents = nullptr;
  Intent* intent = nullptr;
  cache::Forwards* forwards = nullptr;
  cache::Forward* forward = nullptr;
  cache::Routes* routes = nullptr;
};

template <class M>
AnyFields fields_of_layout(M& message) {
  AnyFields fields;
  if constexpr (requires { message.clock; }) fields.clock = &message.clock;
  if constexpr (requires { message.id; }) fields.id = &message.id;
  if constexpr (requires { message.parts; }) fields.parts = &message.parts;
  if constexpr (requires { message.keys; }) fields.keys = &message.keys;
  if constexpr (requires { message.key_bytes; }) fields.key_bytes = &message.key_bytes;
  if constexpr (requires { message.table; }) fields.table = &message.table;
  if constexpr (requires { message.bytes; }) fields.bytes = &message.bytes;
  if constexpr (requires { message.report; }) fields.report = &message.report;
  if constexpr (requires { message.gradients; }) fields.gradients = &message.gradients;
  if constexpr (requires { message.moved_sent; }) fields.moved_sent = &message.moved_sent;
  if constexpr (requires { message.intents; }) fields.intents = &message.intents;
  if constexpr (requires { message.intent; }) fields.intent = &message.intent;
  if constexpr (requires { message.forwards; }) fields.forwards = &message.forwards;
  if constexpr (requires { message.forward; }) fields.forward = &message.forward;
  if constexpr (requires { message.routes; }) fields.routes = &message.routes;
  if (fields.forward != nullptr) fields.clock = &fields.forward->intent.clock;
  if (fields.intent != nullptr) fields.clock = &fields.intent->clock;
  return fields;
}

AnyFields fields_of(AnyMessage& message) {
  auto const of_layout = [](auto& one) { return fields_of_layout(one); };
  return std::visit(kernels::Overloaded{[&](cache::Message& one) { return std::visit(of_layout, one); },
                                        [](EncodedHeader& one) { return fields_of_layout(one); }},
                    message);
}

template <class T>
void set(T* field, T const& value) {
  if (field != nullptr) *field = value;
}

}  // namespace

AnyMessage empty_message(std::uint64_t choice) {
  static auto const all = test::empty_messages();
  choice %= kKinds;
  if (choice == kCollectiveKind) return EncodedHeader{};
  return all.at(kind_of(choice));
}

// Sets a field, if the message has it.
void ScriptedPeer::corrupt(AnyMessage& message) {
  if (exact_ || !script_.rarely(40)) return;
  auto const value = script_.number();
  auto const fields = fields_of(message);
  switch (script_.byte() % 19) {
    case 0: {
      auto other = empty_message(value);
      if (fields.clock != nullptr) set(fields_of(other).clock, *fields.clock);
      if (fields.id != nullptr) set(fields_of(other).id, *fields.id);
      message = other;
      break;
    }
    case 1:
      set(fields.clock, Clock{static_cast<std::int64_t>(value)});
      break;
    case 2:
      set(fields.id, value);
      break;
    case 3:
      if (fields.report != nullptr) fields.report->samples = value;
      break;
    case 4:
      if (fields.report != nullptr) fields.report->signal = static_cast<std::uint32_t>(value);
      break;
    case 5: {
      auto const text = script_.text(40);
      if (fields.report != nullptr) fields.report->rejection = text;
      break;
    }
    case 6:
      set(fields.parts, value);
      break;
    case 7:
      set(fields.table, TableId{static_cast<std::uint32_t>(value)});
      break;
    case 8:
      set(fields.keys, value);
      break;
    case 9:
      set(fields.bytes, script_.text(40));
      break;
    case 10: {
      auto const intent = make_intent(static_cast<std::int64_t>(value));
      if (fields.intents != nullptr) fields.intents->batches.push_back(intent);
      set(fields.intent, intent);
      break;
    }
    case 15: {
      Rank const reader{static_cast<std::uint32_t>(script_.number())};
      cache::Forward const forward{reader, static_cast<cache::RowRole>(value % 4), make_intent(clock_ + 2)};
      if (fields.forwards != nullptr) fields.forwards->batches.push_back(forward);
      set(fields.forward, forward);
      break;
    }
    case 16: {
      bool const away = script_.byte() % 2 == 1, moves = script_.byte() % 2 == 1;
      if (fields.routes != nullptr) fields.routes->batches.push_back({Clock{clock_ + 1}, {{away, moves}}});
      break;
    }
    case 17:
      if (fields.routes != nullptr) fields.routes->bytes = value;
      break;
    case 18:
      if (fields.moved_sent != nullptr) fields.moved_sent->push_back(value);
      break;
    case 11:
      if (fields.bytes == nullptr || fields.bytes->empty()) break;
      (*fields.bytes)[value % fields.bytes->size()] = static_cast<char>(script_.byte());
      break;
    case 12:
      if (fields.intents != nullptr) fields.intents->key_bytes = fields.forwards->key_bytes = value;
      set(fields.key_bytes, value);
      break;
    case 13: {
      cache::GradientBytes const part{value, script_.number(), script_.number()};
      if (fields.gradients != nullptr) fields.gradients->push_back(part);
      break;
    }
    default:
      if (fields.intents == nullptr || fields.intents->batches.empty()) break;
      fields.intents->batches.back().clock = Clock{static_cast<std::int64_t>(value)};
      break;
  }
}

}  // namespace gpups::fuzz
