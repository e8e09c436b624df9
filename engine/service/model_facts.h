// Exact sizes of a config's model, as app/ and ui/ see them: the model room's own counts, through the service's door.
#pragma once

#include "engine/model/counts.h"
