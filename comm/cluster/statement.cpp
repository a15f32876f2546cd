// SPDX-License-Identifier: Apache-2.0
#include "comm/cluster/statement.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>

#include "comm/wire.hpp"

namespace gpups::comm {
namespace {

void put(Writer& writer, Member const& member) {
  for (auto const* text : {&member.host, &member.machine, &member.address, &member.cores}) writer.put_text(*text);
  writer.put<std::int64_t>(member.pid);
}

Member get_member(Reader& reader) {
  Member member;
  for (auto* text : {&member.host, &member.machine, &member.address, &member.cores}) *text = reader.get_text();
  member.pid = reader.get<std::int64_t>();
  return member;
}

// The part of a value that shows where it differs from another one, in whole words: values may be whole configurations,
// or what is wrong with one.
std::string excerpt(std::string_view value, std::size_t differs_at) {
  constexpr std::size_t kShown = 120, kBefore = 30, kWord = 20;
  std::size_t const from =
      value.size() > kShown && differs_at > kBefore ? std::min(differs_at - kBefore, value.size()) : 0;
  std::string shown(value.substr(from, kShown));
  std::replace_if(
      shown.begin(), shown.end(), [](unsigned char c) { return c < ' ' || c == 127; }, ' ');
  if (shown.empty()) shown = "(nothing)";
  bool const is_cut = from + kShown < value.size();
  if (auto const end = shown.rfind(' '); is_cut && end != std::string::npos && end + kWord >= shown.size()) {
    shown.resize(end);
  }
  if (auto const word = shown.find(' '); from > 0 && word < kBefore / 3) shown.erase(0, word + 1);
  return (from > 0 ? "..." : "") + shown + (is_cut ? "..." : "");
}

std::string quoted(std::string const& text) {
  return text.find(' ') == std::string::npos ? text : fmt::format("\"{}\"", text);
}

std::string other_value(std::string const& rank, std::string const& name, std::optional<std::string_view> first,
                        std::optional<std::string_view> other) {
  std::string const why = "(the ranks of a job must agree in it): make it the same on all of them";
  if (!other) return fmt::format("{} has no {}, where rank 0 has one {}", rank, name, why);
  if (!first) return fmt::format("{} has {}, where rank 0 has none {}", rank, excerpt(name, 0), why);
  auto const at = std::mismatch(first->begin(), first->end(), other->begin(), other->end()).first - first->begin();
  auto const differs_at = static_cast<std::size_t>(at);
  return fmt::format("{} has {} = {} where rank 0 has {} {}", rank, name, quoted(excerpt(*other, differs_at)),
                     quoted(excerpt(*first, differs_at)), why);
}

}  // namespace

Statement statement_of(JoinRequest const& request) {
  return {.rank = request.launch.rank,
          .size = static_cast<std::uint32_t>(request.launch.size),
          .version = request.version,
          .agreement = request.agreement,
          .member = request.mine};
}

std::string encode(Statement const& statement) {
  Writer writer;
  writer.put<Rank>(statement.rank);
  writer.put<std::uint32_t>(statement.size);
  writer.put_text(statement.version);
  put(writer, statement.member);
  writer.put<std::uint32_t>(static_cast<std::uint32_t>(statement.agreement.size()));
  for (auto const& [name, value] : statement.agreement) {
    writer.put_text(name);
    writer.put_text(value);
  }
  return writer.take();
}

Statement decode_statement(std::string_view body) {
  Reader reader(body);
  Statement statement;
  statement.rank = reader.get<Rank>();
  statement.size = reader.get<std::uint32_t>();
  statement.version = reader.get_text();
  statement.member = get_member(reader);
  for (auto left = reader.get<std::uint32_t>(); left > 0; --left) {
    std::string name(reader.get_text());
    statement.agreement.emplace_back(std::move(name), reader.get_text());
  }
  reader.end();
  return statement;
}

std::string who(Member const& member) {
  return fmt::format("process {} on host {}", member.pid, excerpt(member.host, 0));
}

std::string disagreement(Statement const& first, Statement const& other) {
  std::string const rank = fmt::format("rank {}", number(other.rank));
  if (other.version != first.version) {
    return fmt::format(
        "{} runs version {} where rank 0 runs {} (they may not understand each other): run the same build on all ranks",
        rank, excerpt(other.version, 0), excerpt(first.version, 0));
  }
  if (other.size != first.size) {
    return fmt::format(
        "{} belongs to a job of {} ranks where rank 0 belongs to one of {} (nobody would know when all have come): "
        "start all ranks with the same WORLD_SIZE",
        rank, other.size, first.size);
  }
  if (number(other.rank) >= first.size) {
    return fmt::format(
        "{} is said to be in a job of {} ranks, by {} (ranks count from 0): give each its own RANK below "
        "WORLD_SIZE",
        rank, first.size, who(other.member));
  }
  std::map<std::string_view, std::string_view> const of_first(first.agreement.begin(), first.agreement.end());
  std::map<std::string_view, std::string_view> const of_other(other.agreement.begin(), other.agreement.end());
  for (auto const& [name, value] : first.agreement) {
    auto const found = of_other.find(name);
    if (found == of_other.end()) return other_value(rank, name, value, {});
    if (found->second != value) return other_value(rank, name, value, found->second);
  }
  for (auto const& [name, value] : other.agreement) {
    if (!of_first.contains(name)) return other_value(rank, name, {}, value);
  }
  return {};
}

std::string encode(Start const& start) {
  Writer writer;
  writer.put<std::uint64_t>(start.session);
  writer.put_text(start.keys);
  writer.put_text(start.announcement);
  writer.put<std::uint32_t>(static_cast<std::uint32_t>(start.members.size()));
  for (Member const& member : start.members) put(writer, member);
  return writer.take();
}

Start decode_start(std::string_view body) {
  Reader reader(body);
  Start start;
  start.session = reader.get<std::uint64_t>();
  start.keys = reader.get_text();
  start.announcement = reader.get_text();
  for (auto left = reader.get<std::uint32_t>(); left > 0; --left) start.members.push_back(get_member(reader));
  reader.end();
  return start;
}

bool concerns(Start const& start, Statement const& mine) {
  return start.members.size() == mine.size && number(mine.rank) < mine.size &&
         start.members[number(mine.rank)] == mine.member;
}

}  // namespace gpups::comm
