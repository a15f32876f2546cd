// SPDX-License-Identifier: Apache-2.0
#include "comm/ucx/worker.hpp"

#include <ucp/api/ucp.h>
#include <ucs/config/global_opts.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "gpups/compiler.hpp"
#include "kernels/base/check.hpp"
#include "kernels/base/checksum.hpp"

namespace gpups::comm {
namespace {

constexpr unsigned kActiveMessage = 1;
constexpr std::size_t kUnhandledMax = std::size_t{1} << 16;
// UCX may use rendezvous for eager messages, but not for messages up to this size: two more messages take longer than a
// copy. (Measured on two cores with 20 KB: an allreduce takes .014 ms instead of .016 over shared memory, and .028
// instead of .099 over TCP. With 32 KB, rendezvous is faster over shared memory.)
constexpr std::size_t kAlwaysEagerBytesMax = std::size_t{24} << 10;

void check(ucs_status_t status, char const* what) {
  GPUPS_REQUIRE(status == UCS_OK, "UCX cannot {} ({}): look at `gpu_train doctor`, or set UCX_TLS", what,
                ucs_status_string(status));
}

std::string corruption_text(AmKind kind, std::size_t bytes) {
  return fmt::format("{} from it was corrupted on the way: check the memory of both machines and the network",
                     name_of(kind, bytes));
}

}  // namespace

struct UcxWorker::Native {
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;

  static ucs_status_t arrived(void* ucx, void const* header, std::size_t header_bytes, void* data, std::size_t bytes,
                              ucp_am_recv_param_t const* how);
  static void failed(void* peer, ucp_ep_h endpoint, ucs_status_t status);
  static void sent(void* request, ucs_status_t status, void* operation);
  static void fetched(void* request, ucs_status_t status, std::size_t bytes, void* operation);
  // Identifies the peer in callbacks of an endpoint. Lives as long as the process, since UCX may report failures late.
  struct Peer {
    UcxWorker* ucx;
    Rank rank;
  };
  std::vector<std::unique_ptr<Peer>> peers;
};

// A pending send or fetch. It deletes itself at its end.
struct UcxWorker::Operation {
  UcxWorker* ucx;
  Rank peer;
  AmWireHeader header;  // of a send
  std::function<void()> then;
  std::string body{};
  AmArrival fetching{};  // of a fetch, with `to` as destination
  void* to = nullptr;

  void end(ucs_status_t status) {
    std::unique_ptr<Operation> const self(this);
    --ucx->open_;
    ucx->arrived_ = true;
    if (status != UCS_OK) return ucx->failed(peer, status);
    if (fetching.checksum && kernels::checksum(to, fetching.bytes) != *fetching.checksum) {
      return ucx->wrong(peer, corruption_text(fetching.header.kind, fetching.bytes));
    }
    if (then) then();
  }
};

UcxWorker::UcxWorker() : native_(std::make_unique<Native>()), handlers_(kAmKinds) {
  // This library reports failed connections itself, with the rank.
  if (std::getenv("UCX_LOG_LEVEL") == nullptr) ucs_global_opts.log_component.log_level = UCS_LOG_LEVEL_FATAL;
  // Otherwise connect() blocks for minutes if a machine is down, and delays the report of the failure detector. UCX
  // 1.13 reads this option only from the environment, not from ucp_config_modify(). A value set by the user is kept.
  setenv("UCX_TCP_CONN_NB", "y", 0);
  ucp_params_t wanted{};
  wanted.field_mask = UCP_PARAM_FIELD_FEATURES;
  wanted.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  check(ucp_init(&wanted, nullptr, &native_->context), "start");
  ucp_context_attr_t can{};
  can.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  check(ucp_context_query(native_->context, &can), "list the memory types that it supports");
  reaches_gpus_ = UCS_BIT(UCS_MEMORY_TYPE_CUDA) & can.memory_types;
  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  check(ucp_worker_create(native_->context, &worker, &native_->worker), "create a worker");
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kActiveMessage;
  handler.cb = Native::arrived;
  handler.arg = this;
  check(ucp_worker_set_am_recv_handler(native_->worker, &handler), "receive");
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  check(ucp_worker_get_address(native_->worker, &address, &bytes), "get its address");
  address_.assign(reinterpret_cast<char const*>(address), bytes);
  ucp_worker_release_address(native_->worker, address);
}

void UcxWorker::connect(Rank me, std::uint64_t session, std::vector<PeerAddress> const& peers) {
  std::lock_guard lock(mutex_);
  me_ = me;
  std::vector<HashKey> keys;
  for (PeerAddress const& peer : peers) keys.push_back(peer.key);
  header_mac_.emplace(me, session, std::move(keys));
  for (PeerAddress const& peer : peers) {
    same_machine_.push_back(peer.same_machine);
    auto const rank = Rank{static_cast<std::uint32_t>(endpoints_.size())};
    native_->peers.push_back(std::make_unique<Native::Peer>(Native::Peer{this, rank}));
    ucp_ep_params_t wanted{};
    wanted.field_mask =
        UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    wanted.address = reinterpret_cast<ucp_address_t const*>(peer.address.data());
    // UCX does not use its shared memory transports if failures of peers are to be reported.
    wanted.err_mode = peer.same_machine ? UCP_ERR_HANDLING_MODE_NONE : UCP_ERR_HANDLING_MODE_PEER;
    wanted.err_handler.cb = Native::failed;
    wanted.err_handler.arg = native_->peers.back().get();
    ucp_ep_h endpoint = nullptr;
    ucs_status_t const status = ucp_ep_create(native_->worker, &wanted, &endpoint);
    GPUPS_REQUIRE(
        status == UCS_OK,
        "rank {} cannot connect to rank {} (UCX: {}): give both a common network, see UCX_NET_DEVICES and UCX_TLS",
        number(me), number(rank), ucs_status_string(status));
    endpoints_.push_back(endpoint);
  }
}

void UcxWorker::handle(AmKind kind, Handler handler) {
  std::lock_guard lock(mutex_);
  handlers_[static_cast<std::size_t>(kind)] = std::move(handler);
}

ucs_status_t UcxWorker::Native::arrived(void* argument, void const* header_data, std::size_t header_bytes, void* data,
                                        std::size_t bytes, ucp_am_recv_param_t const* how) {
  auto& ucx = *static_cast<UcxWorker*>(argument);
  if (!ucx.header_mac_) return UCS_OK;
  ucx.arrived_ = true;
  auto const verified = ucx.header_mac_->open(header_data, header_bytes, bytes);
  if (verified.verdict == HeaderMac::Verified::Verdict::kForeign) return UCS_OK;
  AmHeader const& header = verified.header;
  bool const remote = (how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  bool const intact = remote || !verified.checksum || kernels::checksum(data, bytes) == *verified.checksum;
  if (verified.verdict == HeaderMac::Verified::Verdict::kWrong || !intact) {
    ucx.wrong(header.from, intact ? verified.wrong : corruption_text(header.kind, bytes));
    return UCS_OK;
  }
  auto const& handler = ucx.handlers_[static_cast<std::size_t>(header.kind)];
  if (!handler) {
    bool const kept = remote && ucx.unhandled_.size() < kUnhandledMax;
    if (kept) ucx.unhandled_.push_back({data, bytes, true, header});
    return kept ? UCS_INPROGRESS : UCS_OK;
  }
  ucx.handling_ = data;
  handler(header, {data, bytes, remote, header, verified.checksum});
  bool const dropped = std::exchange(ucx.handling_, nullptr) == nullptr;
  return remote && !dropped ? UCS_INPROGRESS : UCS_OK;
}

void UcxWorker::Native::failed(void* argument, ucp_ep_h, ucs_status_t status) {
  auto const& peer = *static_cast<Peer*>(argument);
  peer.ucx->failed(peer.rank, status);
}

void UcxWorker::failed(Rank peer, int status) {
  arrived_ = true;
  if (broken_) broken_(peer, ucs_status_string(static_cast<ucs_status_t>(status)));
}

void UcxWorker::on_peer_error(void const* listener, OnPeerError wrong) {
  std::lock_guard lock(mutex_);
  on_wrong_.erase(listener);
  if (wrong) on_wrong_.emplace(listener, std::move(wrong));
}

void UcxWorker::wrong(Rank peer, std::string const& what) {
  arrived_ = true;
  for (auto const& [listener, callback] : on_wrong_) callback(peer, what);
}

void UcxWorker::Native::sent(void* request, ucs_status_t status, void* operation) {
  static_cast<Operation*>(operation)->end(status);
  ucp_request_free(request);
}

void UcxWorker::Native::fetched(void* request, ucs_status_t status, std::size_t, void* operation) {
  Native::sent(request, status, operation);
}

void UcxWorker::send(AmProtocol protocol, Rank to, AmKind kind, std::uint64_t number, std::uint64_t count,
                     void const* data, std::size_t bytes, std::function<void()> sent) {
  auto const checksum = protocol == AmProtocol::kDeviceRendezvous ? std::nullopt : checksum_of(to, kind, data, bytes);
  auto const header = header_mac_->sign(to, {me_, kind, number, count}, bytes, checksum);
  std::lock_guard lock(mutex_);
  begin_send(protocol, to, new Operation{this, to, header, std::move(sent)}, data, bytes);
}

void UcxWorker::send(Rank to, AmKind kind, std::uint64_t number, std::uint64_t count, std::string body) {
  auto const checksum = checksum_of(to, kind, body.data(), body.size());
  auto const header = header_mac_->sign(to, {me_, kind, number, count}, body.size(), checksum);
  std::lock_guard lock(mutex_);
  auto* const operation = new Operation{this, to, header, {}, std::move(body)};
  auto const protocol = operation->body.size() > kEagerBytesMax ? AmProtocol::kRendezvous : AmProtocol::kEager;
  begin_send(protocol, to, operation, operation->body.data(), operation->body.size());
}

// Large bulk data within a machine have no checksum: they are only copied between memories, and two more passes over
// them cost a third of the speed (12.4 GiB/s without checksums, 8.5 with them, on a core that reads 20 GiB/s).
std::optional<std::uint64_t> UcxWorker::checksum_of(Rank to, AmKind kind, void const* data, std::size_t bytes) const {
  bool const is_bulk = kind == AmKind::kData || kind == AmKind::kBulkPiece;
  if (is_bulk && bytes > kEagerBytesMax && same_machine_[number(to)]) return std::nullopt;
  return kernels::checksum(data, bytes);
}

void UcxWorker::begin_send(AmProtocol protocol, Rank to, Operation* operation, void const* data, std::size_t bytes) {
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
  how.cb.send = Native::sent;
  how.user_data = operation;
  how.flags = protocol != AmProtocol::kEager  ? UCP_AM_SEND_FLAG_RNDV
              : bytes <= kAlwaysEagerBytesMax ? UCP_AM_SEND_FLAG_EAGER
                                              : 0;
  ++open_;
  auto* const endpoint = static_cast<ucp_ep_h>(endpoints_[number(to)]);
  auto* const request =
      ucp_am_send_nbx(endpoint, kActiveMessage, &operation->header, sizeof operation->header, data, bytes, &how);
  if (!UCS_PTR_IS_PTR(request)) operation->end(UCS_PTR_STATUS(request));
}

void UcxWorker::fetch(AmArrival const& arrival, void* to, std::function<void()> fetched) {
  std::lock_guard lock(mutex_);
  GPUPS_ASSERT(arrival.remote);
  auto* const operation = new Operation{this, arrival.header.from, {}, std::move(fetched), {}, arrival, to};
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  how.cb.recv_am = Native::fetched;
  how.user_data = operation;
  ++open_;
  auto* const request = ucp_am_recv_data_nbx(native_->worker, arrival.data, to, arrival.bytes, &how);
  if (!UCS_PTR_IS_PTR(request)) operation->end(UCS_PTR_STATUS(request));
}

void UcxWorker::drop(AmArrival const& arrival) {
  std::lock_guard lock(mutex_);
  if (!arrival.remote) return;
  if (arrival.data == handling_) {
    handling_ = nullptr;  // dropped when the handler returns
  } else {
    ucp_am_data_release(native_->worker, arrival.data);
  }
}

bool UcxWorker::progress() {
  std::lock_guard lock(mutex_);
  while (ucp_worker_progress(native_->worker) != 0) {
  }
  return std::exchange(arrived_, false);
}

std::unique_ptr<WakeupEvent> UcxWorker::make_wakeup_event() { return make_ucx_wakeup_event(*this, native_->worker); }

// Closes all endpoints; returns whether no operation is pending.
bool UcxWorker::close() {
  if (abandoned_ || open_ > 0) return false;
  auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  std::vector<ucs_status_ptr_t> closing;
  for (void* endpoint : endpoints_) {
    ucp_request_param_t const how{};
    auto* const request = ucp_ep_close_nbx(static_cast<ucp_ep_h>(endpoint), &how);
    if (UCS_PTR_IS_PTR(request)) closing.push_back(request);
  }
  while (!closing.empty() && std::chrono::steady_clock::now() < end) {
    ucp_worker_progress(native_->worker);
    std::erase_if(closing, [](ucs_status_ptr_t request) {
      if (ucp_request_check_status(request) == UCS_INPROGRESS) return false;
      ucp_request_free(request);
      return true;
    });
  }
  return closing.empty();
}

UcxWorker::~UcxWorker() {
  std::lock_guard lock(mutex_);
  broken_ = nullptr;
  for (Handler& handler : handlers_) handler = nullptr;
  for (AmArrival const& arrival : std::exchange(unhandled_, {})) drop(arrival);
  if (close()) {
    ucp_worker_destroy(native_->worker);
    ucp_cleanup(native_->context);
  } else {
    // UCX aborts the process if a worker with pending operations is destroyed, so it is leaked.
    static std::vector<std::unique_ptr<Native>> leaked;
    static std::mutex left_over_mutex;
    std::lock_guard left_over_lock(left_over_mutex);
    leaked.push_back(std::move(native_));
  }
}

}  // namespace gpups::comm

#ifdef __SANITIZE_ADDRESS__
// UCX keeps some memory until the end of the process.
extern "C" GPUPS_EXPORT char const* __lsan_default_suppressions();
extern "C" char const* __lsan_default_suppressions() { return "leak:libucs\nleak:libuct\nleak:libucp\nleak:libpmix\n"; }
#endif
