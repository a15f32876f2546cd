// SPDX-License-Identifier: Apache-2.0
// SIGHUP as the program's parent left it: ignored below nohup.
#pragma once

namespace gpups::tools {

// Gives SIGHUP the action that it had when the program was started: ignored, or the default. UCX's library installs a
// handler of its own as it is loaded, before main(), which would swallow the signal. Call it first in main().
void restore_hangup();

}  // namespace gpups::tools
