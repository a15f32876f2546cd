// SPDX-License-Identifier: Apache-2.0
// What a placement policy needs to know about a table (docs/decisions/012-rows-that-move.md). The policies themselves
// are kernels/placement/choose_owners.hpp.
#pragma once

#include "gpups/table.hpp"
#include "kernels/placement/choose_owners.hpp"

namespace gpups::cache {

using kernels::kPolicyWindow;
using kernels::RowBytes;
using kernels::RowUser;

// Returns the bytes for rows of a table, without the headers of messages.
RowBytes row_bytes(TableOptions const& table);

}  // namespace gpups::cache
