// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/control_channel.hpp"

#include <fmt/core.h>

#include <utility>

#include "comm/base/deadline.hpp"
#include "comm/base/serialization.hpp"
#include "gpups/error.hpp"

namespace gpups::comm {
namespace {

Rank as_rank(int number) { return Rank{static_cast<std::uint32_t>(number)}; }

[[noreturn]] void throw_no_answer(int peer, double timeout_s) {
  throw PeerError(as_rank(peer), fmt::format("rank {} has not answered for {:.3g} s (the connection to it cannot be "
                                             "checked): look at its output, and for firewalls between the machines",
                                             peer, timeout_s));
}

}  // namespace

ControlChannel::ControlChannel(Transport& transport, double timeout_s)
    : transport_(transport), timeout_s_(timeout_s), received_(static_cast<std::size_t>(transport.size())) {}

bool ControlChannel::poll() {
  bool any = false;
  while (auto message = transport_.receive()) {
    received_[number(message->from)].push_back(std::move(message->body));
    any = true;
  }
  return any;
}

std::deque<TransportMessage> ControlChannel::take_unread() {
  std::deque<TransportMessage> rest;
  for (int from = 0; from < size(); ++from) {
    for (auto& body : std::exchange(received_[static_cast<std::size_t>(from)], {})) {
      rest.push_back({as_rank(from), std::move(body)});
    }
  }
  return rest;
}

void ControlChannel::wait_send(int to, std::string const& body) {
  Deadline deadline(timeout_s_);
  while (!transport_.send(as_rank(to), body)) {
    if (!poll() && !deadline.wait()) throw_no_answer(to, timeout_s_);
  }
}

std::string ControlChannel::wait_receive(int from) {
  auto& messages = received_[static_cast<std::size_t>(from)];
  Deadline deadline(timeout_s_);
  while (messages.empty()) {
    if (!poll() && !deadline.wait()) throw_no_answer(from, timeout_s_);
  }
  std::string body = std::move(messages.front());
  messages.pop_front();
  return body;
}

std::vector<std::string> ControlChannel::wait_gather_to_root(std::string const& mine) {
  if (rank() != 0) {
    wait_send(0, mine);
    return {};
  }
  std::vector<std::string> all{mine};
  for (int from = 1; from < size(); ++from) all.push_back(wait_receive(from));
  return all;
}

std::string ControlChannel::wait_broadcast(std::string const& body) {
  if (rank() != 0) return wait_receive(0);
  for (int to = 1; to < size(); ++to) wait_send(to, body);
  return body;
}

std::vector<std::string> ControlChannel::wait_allgather(std::string const& mine) {
  Writer all;
  for (std::string const& body : wait_gather_to_root(mine)) all.put_text(body);
  std::string const gathered = wait_broadcast(all.take());
  Reader reader(gathered);
  std::vector<std::string> all_bodies;
  for (int from = 0; from < size(); ++from) all_bodies.emplace_back(reader.get_text());
  reader.end();
  return all_bodies;
}

}  // namespace gpups::comm
