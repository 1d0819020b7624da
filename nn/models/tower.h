#pragma once
/// The former name of backbone.h, for one release.
#include "nn/models/backbone.h"  // IWYU pragma: export
