// What runs will need, as app/ and ui/ see it: the planner room's own answers, through the service's door.
#pragma once

#include "engine/planner/estimate.h"
#include "engine/planner/levers.h"
#include "engine/planner/memory.h"
