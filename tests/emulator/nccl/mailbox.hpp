// SPDX-License-Identifier: Apache-2.0
// Messages between the ranks of a communicator, which are threads of one process or processes of one machine. A message
// is a file of the temporary folder; its receiver removes it. Nothing here waits.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gpups::emulator {

class Mailbox {
 public:
  // name: the same on all ranks, and of no other communicator.
  Mailbox(std::string name, int me) : name_(std::move(name)), me_(me) {}
  // Removes what was sent and not received.
  ~Mailbox();
  Mailbox(Mailbox const&) = delete;
  Mailbox& operator=(Mailbox const&) = delete;

  // The number of a message: messages between two ranks have the numbers 0, 1, ... in each direction.
  using Number = std::uint64_t;
  Number next_sent(int to) { return sent_[to]++; }
  Number next_received(int from) { return received_[from]++; }

  // Throws std::system_error if the file cannot be written.
  void send(int to, Number number, std::span<std::uint8_t const> data);
  // Returns whether the message has been received.
  bool is_received(int to, Number number) const;
  // Returns the message if it has been sent.
  std::optional<std::vector<std::uint8_t>> receive(int from, Number number);

 private:
  std::string path(int from, int to, Number number) const;

  std::string const name_;
  int const me_;
  std::map<int, Number> sent_, received_;  // by the other rank
};

}  // namespace gpups::emulator
