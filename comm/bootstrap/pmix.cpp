// SPDX-License-Identifier: Apache-2.0
#include "comm/bootstrap/pmix.hpp"

#include "comm/base/serialization.hpp"
#include "kernels/base/build_config.hpp"
#include "kernels/base/check.hpp"

#if GPUPS_HAS_PMIX
#include <pmix.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>

namespace gpups::comm {
namespace {

constexpr char const* kKey = "gpups.bootstrap_address";

void require(pmix_status_t status, char const* call) {
  GPUPS_REQUIRE(status == PMIX_SUCCESS,
                "the launcher failed in {}: {} (ranks cannot find each other without it): look at its output, or set "
                "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT instead",
                call, PMIx_Error_string(status));
}

using Value = std::unique_ptr<pmix_value_t, void (*)(pmix_value_t*)>;

Value get(pmix_proc_t const& of, char const* key) {
  pmix_value_t* value = nullptr;
  require(PMIx_Get(&of, key, nullptr, 0, &value), key);
  return {value, [](pmix_value_t* owned) { PMIX_VALUE_RELEASE(owned); }};
}

pmix_proc_t process(std::string const& job, pmix_rank_t rank) {
  pmix_proc_t made{};
  job.copy(made.nspace, sizeof made.nspace - 1);
  made.rank = rank;
  return made;
}

std::string encode(BootstrapAddress const& address) {
  Writer writer;
  writer.put_text(address.token);
  writer.put_text(address.machine);
  writer.put<std::int32_t>(address.port);
  writer.put<std::uint32_t>(static_cast<std::uint32_t>(address.hosts.size()));
  for (std::string const& host : address.hosts) writer.put_text(host);
  return writer.take();
}

BootstrapAddress decode(std::string_view body) {
  Reader reader(body);
  BootstrapAddress address;
  address.token = reader.get_text();
  address.machine = reader.get_text();
  address.port = reader.get<std::int32_t>();
  for (auto left = reader.get<std::uint32_t>(); left > 0; --left) address.hosts.emplace_back(reader.get_text());
  reader.end();
  return address;
}

std::uint32_t number_of(pmix_proc_t const& of, char const* key) {
  Value const value = get(of, key);
  if (value->type == PMIX_UINT16) return value->data.uint16;
  GPUPS_REQUIRE(value->type == PMIX_UINT32,
                "the launcher gives a value of a wrong type for {} (the rank is unknown): update the launcher", key);
  return value->data.uint32;
}

void put(std::string body) {
  pmix_value_t value{};
  value.type = PMIX_BYTE_OBJECT;
  value.data.bo = {.bytes = body.data(), .size = body.size()};
  require(PMIx_Put(PMIX_GLOBAL, kKey, &value), "PMIx_Put");
  require(PMIx_Commit(), "PMIx_Commit");
}

void wait_fence(double timeout_s) {
  pmix_info_t info[2] = {};
  bool const collect = true;
  int const seconds = static_cast<int>(std::clamp(timeout_s, 1.0, 1e9));
  PMIX_INFO_LOAD(&info[0], PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
  PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &seconds, PMIX_INT);
  require(PMIx_Fence(nullptr, 0, info, 2), "PMIx_Fence");
}

// The reference of this process to PMIx, which counts those of MPI too. It ends at exit, before which mpirun expects
// it.
struct Session {
  Session() { require(PMIx_Init(&mine, nullptr, 0), "PMIx_Init"); }
  ~Session() {
    if (getpid() == pid) (void)PMIx_Finalize(nullptr, 0);  // a forked process has no thread of PMIx
  }
  Session(Session const&) = delete;
  Session& operator=(Session const&) = delete;

  pmix_proc_t mine{};
  pid_t pid = getpid();
};

}  // namespace

Pmix::Pmix() {
  static Session const session;
  pmix_proc_t const& mine = session.mine;
  job_ = mine.nspace;
  rank_ = Rank{mine.rank};
  size_ = static_cast<int>(number_of(process(job_, PMIX_RANK_WILDCARD), PMIX_JOB_SIZE));
}

BootstrapAddress Pmix::wait_exchange(BootstrapAddress const& mine, double timeout_s) {
  if (rank_ == Rank{0}) put(encode(mine));
  wait_fence(timeout_s);
  BootstrapAddress address = mine;
  if (rank_ != Rank{0}) {
    Value const value = get(process(job_, 0), kKey);
    GPUPS_REQUIRE(value->type == PMIX_BYTE_OBJECT,
                  "the launcher returns a value of another type than rank 0 has published (rank 0 cannot be found): "
                  "run the same build on all ranks");
    address = decode({value->data.bo.bytes, value->data.bo.size});
  }
  return address;
}

}  // namespace gpups::comm

#else

namespace gpups::comm {

Pmix::Pmix() {
  throw Error(
      "this build cannot get its rank from the launcher (it was built without PMIx): install libpmix-dev and build "
      "again, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
}
BootstrapAddress Pmix::wait_exchange(BootstrapAddress const& mine, double) { return mine; }

}  // namespace gpups::comm

#endif
