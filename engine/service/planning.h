// What runs will need, as app/ and ui/ see it: the planner room's own answers, through the service's door.
#pragma once

#include "engine/planner/memory.h"
