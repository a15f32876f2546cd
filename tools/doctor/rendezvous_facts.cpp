// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "comm/bootstrap/launch.hpp"
#include "comm/bootstrap/socket.hpp"
#include "gpups/error.hpp"
#include "tools/doctor/facts.hpp"

namespace gpups::tools {
namespace {

using trainer::RendezvousFacts;

RendezvousFacts::Host look_up(std::string const& name) {
  comm::Resolved const found = comm::wait_resolve(name, 0);
  bool const loopback = std::all_of(found.endpoints.begin(), found.endpoints.end(),
                                    [](comm::SocketAddress const& endpoint) { return endpoint.is_loopback(); });
  return {.name = name, .error = found.error, .loopback = found.error.empty() && loopback};
}

// Returns the errno of listening at a port, or 0 if that is possible.
int error_of_listening(int port) {
  int const listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listener < 0) return errno;
  int const yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  bool const good =
      bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(listener, 1) == 0;
  int const error = good ? 0 : errno;
  close(listener);
  return error;
}

std::size_t bytes_of_token(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.size();
}

std::optional<RendezvousFacts::Token> read_token() {
  RendezvousFacts::Token token;
  if (char const* const file = std::getenv("GPUPS_TOKEN_FILE"); file != nullptr && *file != '\0') {
    token.file = file;
    struct stat status {};
    if (stat(file, &status) == 0) token.mode = status.st_mode & 07777U;
    errno = 0;
    std::ifstream in(file, std::ios::binary);
    std::string const text{std::istreambuf_iterator<char>(in), {}};
    if (!in.is_open() || in.bad()) token.error = std::strerror(errno);
    token.bytes = bytes_of_token(text);
    return token;
  }
  char const* const text = std::getenv("GPUPS_TOKEN");
  if (text == nullptr) return std::nullopt;
  token.bytes = bytes_of_token(text);
  return token;
}

char const* words_of(comm::LaunchEnvironment::Kind kind) {
  switch (kind) {
    case comm::LaunchEnvironment::Kind::kAlone:
      return "";
    case comm::LaunchEnvironment::Kind::kEnvironment:
      return "a launcher that sets RANK and WORLD_SIZE";
    case comm::LaunchEnvironment::Kind::kPmix:
      return "a launcher with PMIx";
  }
  return "";
}

}  // namespace

RendezvousFacts read_rendezvous() {
  RendezvousFacts facts;
  facts.token = read_token();
  try {
    comm::LaunchEnvironment const launch = comm::detect_launch();
    facts.launcher = words_of(launch.kind);
    facts.rank = static_cast<int>(number(launch.rank));
    facts.size = launch.size;
    facts.local_rank = launch.local_rank;
    for (std::string const& host : launch.hosts) facts.hosts.push_back(look_up(host));
    facts.port = launch.port;
    bool const listens = launch.kind == comm::LaunchEnvironment::Kind::kEnvironment && facts.rank == 0;
    if (listens && launch.port != 0) facts.port_error = error_of_listening(launch.port);
  } catch (Error const& error) {
    facts.error = error.what();
  }
  return facts;
}

}  // namespace gpups::tools
