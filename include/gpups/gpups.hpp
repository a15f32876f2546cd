// SPDX-License-Identifier: Apache-2.0
// All that an application includes.
#pragma once

#include "gpups/array.hpp"
#include "gpups/device.hpp"
#include "gpups/error.hpp"
#include "gpups/group.hpp"
#include "gpups/stats.hpp"
#include "gpups/store.hpp"
#include "gpups/stream.hpp"
#include "gpups/table.hpp"
#include "gpups/top_k_allreduce.hpp"
#include "gpups/types.hpp"
