// SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/rank_info.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>

#include "comm/base/serialization.hpp"

namespace gpups::comm {
namespace {

void put(Writer& writer, ProcessInfo const& member) {
  for (auto const* text : {&member.host, &member.machine, &member.address, &member.cores, &member.near_gpus}) {
    writer.put_text(*text);
  }
  writer.put<std::int64_t>(member.pid);
}

ProcessInfo get_process_info(Reader& reader) {
  ProcessInfo member;
  for (auto* text : {&member.host, &member.machine, &member.address, &member.cores, &member.near_gpus}) {
    *text = reader.get_text();
  }
  member.pid = reader.get<std::int64_t>();
  return member;
}

// Returns the part of a value around its first difference from another value, in whole words. Values may be whole
// configurations, or the error of one.
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
  std::string const why = "(it must be equal on all ranks of a job): set it to the same value on all of them";
  if (!other) return fmt::format("{} has no {}, where rank 0 has one {}", rank, name, why);
  if (!first) return fmt::format("{} has {}, where rank 0 has none {}", rank, excerpt(name, 0), why);
  auto const at = std::mismatch(first->begin(), first->end(), other->begin(), other->end()).first - first->begin();
  auto const differs_at = static_cast<std::size_t>(at);
  return fmt::format("{} has {} = {} where rank 0 has {} {}", rank, name, quoted(excerpt(*other, differs_at)),
                     quoted(excerpt(*first, differs_at)), why);
}

}  // namespace

RankInfo rank_info_of(JoinRequest const& request) {
  return {.rank = request.launch.rank,
          .size = static_cast<std::uint32_t>(request.launch.size),
          .group = request.group,
          .version = request.version,
          .must_match = request.must_match,
          .member = request.mine};
}

std::string encode(RankInfo const& info) {
  Writer writer;
  writer.put<Rank>(info.rank);
  writer.put<std::uint32_t>(info.size);
  writer.put_text(info.group);
  writer.put_text(info.version);
  put(writer, info.member);
  writer.put<std::uint32_t>(static_cast<std::uint32_t>(info.must_match.size()));
  for (auto const& [name, value] : info.must_match) {
    writer.put_text(name);
    writer.put_text(value);
  }
  return writer.take();
}

RankInfo decode_rank_info(std::string_view body) {
  Reader reader(body);
  RankInfo info;
  info.rank = reader.get<Rank>();
  info.size = reader.get<std::uint32_t>();
  info.group = reader.get_text();
  info.version = reader.get_text();
  info.member = get_process_info(reader);
  for (auto left = reader.get<std::uint32_t>(); left > 0; --left) {
    std::string name(reader.get_text());
    info.must_match.emplace_back(std::move(name), reader.get_text());
  }
  reader.end();
  return info;
}

std::string group_text(std::string_view name) {
  return name.empty() ? "the group without a name" : fmt::format("the group '{}'", excerpt(name, 0));
}

std::string describe(ProcessInfo const& member) {
  return fmt::format("process {} on host {}", member.pid, excerpt(member.host, 0));
}

std::string mismatch_of(RankInfo const& first, RankInfo const& other) {
  std::string const rank = fmt::format("rank {}", number(other.rank));
  if (other.version != first.version) {
    return fmt::format(
        "{} runs version {} where rank 0 runs {} (they may be incompatible): run the same build on all ranks", rank,
        excerpt(other.version, 0), excerpt(first.version, 0));
  }
  if (other.size != first.size) {
    return fmt::format(
        "{} belongs to a job of {} ranks where rank 0 belongs to one of {} (the number of ranks is unclear): "
        "start all ranks with the same WORLD_SIZE",
        rank, other.size, first.size);
  }
  if (number(other.rank) >= first.size) {
    return fmt::format(
        "{} is out of range in a job of {} ranks; it is {} (ranks count from 0): give each process its own RANK below "
        "WORLD_SIZE",
        rank, first.size, describe(other.member));
  }
  std::map<std::string_view, std::string_view> const of_first(first.must_match.begin(), first.must_match.end());
  std::map<std::string_view, std::string_view> const of_other(other.must_match.begin(), other.must_match.end());
  for (auto const& [name, value] : first.must_match) {
    auto const found = of_other.find(name);
    if (found == of_other.end()) return other_value(rank, name, value, {});
    if (found->second != value) return other_value(rank, name, value, found->second);
  }
  for (auto const& [name, value] : other.must_match) {
    if (!of_first.contains(name)) return other_value(rank, name, {}, value);
  }
  return {};
}

std::string encode(StartMessage const& start) {
  Writer writer;
  writer.put<std::uint64_t>(start.session);
  writer.put_text(start.keys);
  writer.put_text(start.broadcast_data);
  writer.put<std::uint32_t>(static_cast<std::uint32_t>(start.members.size()));
  for (ProcessInfo const& member : start.members) put(writer, member);
  return writer.take();
}

StartMessage decode_start(std::string_view body) {
  Reader reader(body);
  StartMessage start;
  start.session = reader.get<std::uint64_t>();
  start.keys = reader.get_text();
  start.broadcast_data = reader.get_text();
  for (auto left = reader.get<std::uint32_t>(); left > 0; --left) start.members.push_back(get_process_info(reader));
  reader.end();
  return start;
}

bool matches(StartMessage const& start, RankInfo const& mine) {
  return start.members.size() == mine.size && number(mine.rank) < mine.size &&
         start.members[number(mine.rank)] == mine.member;
}

}  // namespace gpups::comm
