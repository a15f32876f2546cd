// SPDX-License-Identifier: Apache-2.0
// Sleeps until UCX has something to do, or somebody rings.
#pragma once

#include <memory>

#include "comm/bell.hpp"

struct ucp_worker;

namespace gpups::comm {

class UcxLink;

// The link must outlive it.
std::unique_ptr<Bell> make_ucx_bell(UcxLink& link, ucp_worker* worker);

}  // namespace gpups::comm
