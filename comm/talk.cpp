// SPDX-License-Identifier: Apache-2.0
#include "comm/talk.hpp"

#include <fmt/core.h>

#include <utility>

#include "comm/patience.hpp"
#include "comm/wire.hpp"
#include "gpups/error.hpp"

namespace gpups::comm {
namespace {

Rank as_rank(int number) { return Rank{static_cast<std::uint32_t>(number)}; }

[[noreturn]] void give_up(int peer, double timeout_s) {
  throw PeerError(as_rank(peer), fmt::format("rank {} has not answered for {:.3g} s (nothing can be said of the way to "
                                             "it): look at what it has printed, and for firewalls between the machines",
                                             peer, timeout_s));
}

}  // namespace

Talk::Talk(Transport& transport, double timeout_s)
    : transport_(transport), timeout_s_(timeout_s), arrived_(static_cast<std::size_t>(transport.size())) {}

bool Talk::take() {
  bool any = false;
  while (auto message = transport_.receive()) {
    arrived_[number(message->from)].push_back(std::move(message->body));
    any = true;
  }
  return any;
}

std::deque<Message> Talk::take_rest() {
  std::deque<Message> rest;
  for (int from = 0; from < size(); ++from) {
    for (auto& body : std::exchange(arrived_[static_cast<std::size_t>(from)], {})) {
      rest.push_back({as_rank(from), std::move(body)});
    }
  }
  return rest;
}

void Talk::wait_send(int to, std::string const& body) {
  Patience patience(timeout_s_);
  while (!transport_.send(as_rank(to), body)) {
    if (!take() && !patience.wait()) give_up(to, timeout_s_);
  }
}

std::string Talk::wait_receive(int from) {
  auto& messages = arrived_[static_cast<std::size_t>(from)];
  Patience patience(timeout_s_);
  while (messages.empty()) {
    if (!take() && !patience.wait()) give_up(from, timeout_s_);
  }
  std::string body = std::move(messages.front());
  messages.pop_front();
  return body;
}

std::vector<std::string> Talk::wait_gather(std::string const& mine) {
  if (rank() != 0) {
    wait_send(0, mine);
    return {};
  }
  std::vector<std::string> all{mine};
  for (int from = 1; from < size(); ++from) all.push_back(wait_receive(from));
  return all;
}

std::string Talk::wait_tell(std::string const& body) {
  if (rank() != 0) return wait_receive(0);
  for (int to = 1; to < size(); ++to) wait_send(to, body);
  return body;
}

std::vector<std::string> Talk::wait_say_to_all(std::string const& mine) {
  Writer all;
  for (std::string const& one : wait_gather(mine)) all.put_text(one);
  std::string const told = wait_tell(all.take());
  Reader reader(told);
  std::vector<std::string> said;
  for (int from = 0; from < size(); ++from) said.emplace_back(reader.get_text());
  reader.end();
  return said;
}

}  // namespace gpups::comm
