/// The tape without extensions, for programs that do not link tape/hook.cpp.
#include "autograd/tensor.h"

HEED_BEGIN

TapeHook* const tape_hook = nullptr;

HEED_END
