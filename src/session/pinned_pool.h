// A thread pool whose threads stay on one processor each (--pin): steadier times on a machine that is otherwise idle,
// slower ones beside other work.
#pragma once

#include <memory>

#include "base/thread_pool.h"

namespace fusewise::session {

// `threads` threads including the caller, which is pinned as well; round robin over the processors in the caller's
// affinity mask. UserError when the system does not let threads be pinned.
std::shared_ptr<ThreadPool> pinned_pool(int threads);

}  // namespace fusewise::session
