// The corpora of a workspace, as app/ and ui/ see them: the data room's own interface, through the service's door.
#pragma once

#include "engine/data/corpus.h"
#include "engine/data/tinyworld_corpus.h"
