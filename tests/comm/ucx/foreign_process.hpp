// SPDX-License-Identifier: Apache-2.0
// A sender of any bytes to the address of a UcxWorker, by UCX alone: what a process can do that is no rank, or a
// network that changes what it carries.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace gpups::test {

class UcxStranger {
 public:
  explicit UcxStranger(std::string const& address);
  ~UcxStranger();

  // Returns when it is out. Large ones wait until the receiver fetches or drops them: `meanwhile` is called until then.
  template <class Meanwhile>
  void send(void const* header, std::size_t header_bytes, std::string const& body, bool remote, Meanwhile meanwhile) {
    void* const request = begin(header, header_bytes, body, remote);
    while (!over(request)) meanwhile();
  }

 private:
  void* begin(void const* header, std::size_t header_bytes, std::string const& body, bool remote);
  bool over(void* request);

  struct Native;
  std::unique_ptr<Native> native_;
};

}  // namespace gpups::test
