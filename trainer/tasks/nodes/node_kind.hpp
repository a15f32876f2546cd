// SPDX-License-Identifier: Apache-2.0
// The kind of task for the nodes of a network.
#pragma once

#include "trainer/config/task_kind.hpp"

namespace gpups::trainer {

TaskKind const& node_kind();

}  // namespace gpups::trainer
