// SPDX-License-Identifier: Apache-2.0
#include "tests/comm/ucx/foreign_process.hpp"

#include <ucp/api/ucp.h>

#include "gpups/error.hpp"

namespace gpups::test {
namespace {

void check(ucs_status_t status) {
  if (status != UCS_OK) throw Error(std::string("UCX of the foreign process failed: ") + ucs_status_string(status));
}

}  // namespace

struct ForeignUcxSender::Native {
  ucp_context_h context = nullptr;
  ucp_worker_h worker = nullptr;
  ucp_ep_h endpoint = nullptr;
};

ForeignUcxSender::ForeignUcxSender(std::string const& address) : native_(std::make_unique<Native>()) {
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM;
  check(ucp_init(&params, nullptr, &native_->context));
  ucp_worker_params_t worker{};
  check(ucp_worker_create(native_->context, &worker, &native_->worker));
  ucp_ep_params_t endpoint{};
  endpoint.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  endpoint.address = reinterpret_cast<ucp_address_t const*>(address.data());
  check(ucp_ep_create(native_->worker, &endpoint, &native_->endpoint));
}

ForeignUcxSender::~ForeignUcxSender() {
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = UCP_EP_CLOSE_FLAG_FORCE;
  void* const closing = ucp_ep_close_nbx(native_->endpoint, &how);
  while (!over(closing)) {
  }
  ucp_worker_destroy(native_->worker);
  ucp_cleanup(native_->context);
}

void* ForeignUcxSender::begin(void const* header, std::size_t header_bytes, std::string const& body, bool remote) {
  constexpr unsigned kActiveMessage = 1;
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = remote ? UCP_AM_SEND_FLAG_RNDV : UCP_AM_SEND_FLAG_EAGER;
  return ucp_am_send_nbx(native_->endpoint, kActiveMessage, header, header_bytes, body.data(), body.size(), &how);
}

bool ForeignUcxSender::over(void* request) {
  ucp_worker_progress(native_->worker);
  if (!UCS_PTR_IS_PTR(request)) return true;
  if (ucp_request_check_status(request) == UCS_INPROGRESS) return false;
  ucp_request_free(request);
  return true;
}

}  // namespace gpups::test
