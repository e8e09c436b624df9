// How states and events look: shape, word and colour. The cause stands beside them.
#pragma once

#include <QString>
#include <optional>
#include <string_view>

#include "engine/run/run.h"
#include "ui/models/snapshot.h"
#include "ui/theme/glyphs.h"
#include "ui/theme/theme.h"

namespace stacklab::ui {

struct StateLook {
  Glyph glyph;
  QString word;
  Token color, ground;
};

StateLook look_of(RunState state, bool stalled);
inline StateLook look_of(const RunInfo& run) { return look_of(run.summary.state, run.summary.stalled); }
// The cause in a few words: what the store says, or what follows from the state ("no beat 4 min").
QString cause_of(const RunInfo& run, double now);
// It failed because its numbers were numbers no more.
bool has_diverged(const RunInfo& run);

struct EventLook {
  Glyph glyph;
  Token color;
};
EventLook look_of(RunEvent::Kind kind);

// Of the whole run, 0 to 1; below 0 when unknown.
double fraction_done(const RunSummary& run);
// Seconds until the run ends at its speed so far; below 0 when unknown.
double seconds_left(const RunSummary& run);
double tokens_per_step(const RunInfo& run);
// "Text" for "text" and so on; a phase without a title stands for itself.
QString phase_title(const std::string& phase);
// Whether a job waits for its turn.
bool is_queued(const JobSnapshot& job);
std::optional<double> fact_of(const RunSummary& run, std::string_view name);

}  // namespace stacklab::ui
