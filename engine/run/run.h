// The vocabulary shared by everything that runs: what a run is called, which states it has, and what it reports while
// running.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stacklab {

// The config hash (12 lower-case hex digits): a config determines a run, so they share one name.
using RunId = std::string;

enum class RunState { queued, running, paused, stopping, finished, failed, killed, lost };

std::string_view to_string(RunState state);
std::optional<RunState> run_state_from_string(std::string_view word);
// Whether some process should be working on a run in this state.
inline bool is_active(RunState s) { return s == RunState::running || s == RunState::stopping; }

// Where a run is, for a person: "text" -> "shards" -> "training" -> "evaluation". done and total count the phase's own
// unit (bytes, documents, steps); total 0 means unknown.
struct Progress {
  std::string phase;
  std::string detail;  // one line, for example "King James Bible, 4.4 MB, from the distribution's package"
  std::int64_t done = 0;
  std::int64_t total = 0;
};

// Names of the metrics that training reports. Values may be NaN or infinite; the store keeps them apart.
namespace metric {
inline constexpr std::string_view loss = "loss";                // nats per target token: ce + z_loss
inline constexpr std::string_view ce = "ce";                    // cross-entropy alone, nats per token
inline constexpr std::string_view z_loss = "z_loss";            // z_loss_coef * mean(lse^2)
inline constexpr std::string_view val_loss = "val_loss";        // cross-entropy on held-out documents
inline constexpr std::string_view val_bpb = "val_bpb";          // the same, bits per byte of text
inline constexpr std::string_view adam_lr = "adam_lr";          // AdamW's rate in this update
inline constexpr std::string_view muon_lr = "muon_lr";          // Muon's rate in this update
inline constexpr std::string_view grad_norm = "grad_norm";      // global L2 norm before clipping
inline constexpr std::string_view update_norm = "update_norm";  // L2 norm of what the update took from the parameters
inline constexpr std::string_view tokens_per_second = "tokens_per_second";  // of whole steps
// Of a whole step, as a share of what this computer's matrix products reach: 6 FLOPs per parameter and token; useful
// FLOPs with attention over the run's length; the same with attention inside the documents of the step, by the sum of
// their squared lengths; what the Programs execute, optimiser included, with attention over the run's length.
inline constexpr std::string_view mfu_6nd = "mfu_6nd";
inline constexpr std::string_view mfu_attention = "mfu_attention";
inline constexpr std::string_view mfu_documents = "mfu_documents";
inline constexpr std::string_view hfu = "hfu";
inline constexpr std::string_view process_bytes = "process_bytes";  // resident memory of the process that trains
inline constexpr std::string_view max_logit = "max_logit";          // largest attention logit of all layers and heads
// The same of one layer and head, both from 0: "max_logit.L3.H7". With evaluations, not with every step.
std::string max_logit_of(std::int64_t layer, std::int64_t head);
}  // namespace metric

struct MetricValue {
  std::string_view name;  // one of metric::*, or a string that outlives the call
  double value = 0;
};

// What one step measured. step counts updates from 1; tokens is what the run has consumed up to and including this
// step.
struct MetricEvent {
  std::int64_t step = 0;
  std::int64_t tokens = 0;
  double process_seconds =
      0;  // time spent in this run, pauses and other processes' parts included as recorded, not wall clock
  double unix_time = 0;  // wall clock, seconds since 1970
  std::vector<MetricValue> values;
};

// What happened at a step. With a severity it is an alert: raised once, and open until it is resolved.
struct RunEvent {
  enum class Kind { info, checkpoint, spike, logit, non_finite, warning, stall, budget, disk, store };
  enum class Severity { none, notice, warning, critical };
  Kind kind = Kind::info;
  std::int64_t step = 0;
  std::string text;
  Severity severity = Severity::none;
  std::optional<double> value = {};  // what was too large, where there is one number

  bool is_alert() const { return severity != Severity::none; }
};
std::string_view to_string(RunEvent::Kind kind);
std::optional<RunEvent::Kind> run_event_kind_from_string(std::string_view word);
std::string_view to_string(RunEvent::Severity severity);  // none is the empty word
std::optional<RunEvent::Severity> severity_from_string(std::string_view word);
// Whether the event tells of the process rather than of the step's numbers: it stays true when the step is trained
// again.
bool outlives_step(RunEvent::Kind kind);

// See metric::mfu_6nd and the three after it. NaN: the rate of matrix products is not known.
struct Utilisation {
  double mfu_6nd = std::numeric_limits<double>::quiet_NaN();
  double mfu_attention = std::numeric_limits<double>::quiet_NaN();
  double mfu_documents = std::numeric_limits<double>::quiet_NaN();
  double hfu = std::numeric_limits<double>::quiet_NaN();
};

// Facts that tell what a whole step and each operation in it took when some steps were measured, in seconds a step:
// "step_seconds", "step_seconds.attention_forward".
inline constexpr std::string_view step_seconds_fact = "step_seconds";
// The last step that was measured.
inline constexpr std::string_view step_seconds_at_fact = "step_seconds_at";

// What all calls of one operation cost.
struct OperationTotal {
  std::string op;
  std::int64_t calls = 0;
  double seconds = 0, flops = 0, bytes = 0;
};

// How the file of a trace begins, by which it is known.
inline constexpr std::string_view trace_beginning = R"({"displayTimeUnit":"ms","traceEvents":[)";

// What a trace of some steps showed.
struct TraceSummary {
  std::string file;
  std::int64_t first_step = 0, last_step = 0;
  double seconds = 0;                      // of these steps, with what is not an operation
  std::vector<OperationTotal> operations;  // the most expensive first
};

// Where a running job reports. The store implements it; train/ knows only this. Calls come from one engine thread,
// return at once (they queue), and never fail: losing a metric must not stop training, and the sink says so itself
// where that happens.
class RunSink {
 public:
  virtual ~RunSink() = default;
  virtual void progress(const Progress& progress) = 0;
  virtual void metrics(const MetricEvent& event) = 0;
  virtual void event(const RunEvent& event) = 0;
  // The open alerts of this kind are over.
  virtual void resolved(RunEvent::Kind, std::int64_t /*step*/) {}
  // The job lives, and promises the next call within next_within_seconds.
  virtual void beat(double next_within_seconds) = 0;
  // Training continues after step k: rows of later steps are superseded.
  virtual void resumed_after(std::int64_t step) = 0;
  // Named constants of a run, drawn as reference lines ("unigram_entropy": 2.85, nats per token).
  virtual void fact(std::string_view name, double value) = 0;
  // The one call that waits: until what was reported so far would survive the end of this process, as far as the disk
  // has room; for nobody's lock. Before a checkpoint appears, so that whoever continues from it finds every step up to
  // it.
  virtual void settle() {}
};

}  // namespace stacklab
