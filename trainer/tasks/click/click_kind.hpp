// SPDX-License-Identifier: Apache-2.0
// The kind of task for click-through models.
#pragma once

#include "trainer/config/task_kind.hpp"

namespace gpups::trainer {

TaskKind const& click_kind();

}  // namespace gpups::trainer
