// SPDX-License-Identifier: Apache-2.0
// Sends any bytes to the address of a UcxWorker, with UCX alone, as a process that is no rank can do, or a network that
// changes bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace gpups::test {

class ForeignUcxSender {
 public:
  explicit ForeignUcxSender(std::string const& address);
  ~ForeignUcxSender();

  // Returns when the data are sent. Remote data wait until the receiver fetches or drops them; `meanwhile` is called
  // until then.
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
