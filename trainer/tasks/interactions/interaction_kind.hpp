// SPDX-License-Identifier: Apache-2.0
// The kind of task for implicit feedback: which users chose which items.
#pragma once

#include "trainer/config/task_kind.hpp"

namespace gpups::trainer {

TaskKind const& interaction_kind();

}  // namespace gpups::trainer
