#include "engine/train/trainer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/atomic_file.h"
#include "engine/base/clock.h"
#include "engine/base/environment.h"
#include "engine/base/held_folder.h"
#include "engine/base/log.h"
#include "engine/base/text.h"
#include "engine/base/thread_team.h"
#include "engine/config/config_io.h"
#include "engine/model/counts.h"
#include "engine/optim/schedule.h"
#include "engine/train/checkpoint.h"
#include "engine/train/milestones.h"
#include "engine/train/train_step.h"

namespace stacklab {
namespace {

// A run whose gradient is not finite this often in a row will not recover by itself.
constexpr int max_skipped_in_a_row = 10;
// A checkpoint that could not be written is tried again so many seconds later, should none be due before.
constexpr double save_again_after = 60;

// Whether a number that is none has a sign is of no interest.
std::string number_text(double v) { return std::isnan(v) ? "nan" : fmt::format("{}", v); }

class Trainer {
 public:
  Trainer(const TrainRequest& request, const Dataset& data, RunSink& sink, std::stop_token stop)
      : request_(request),
        config_(request.config),
        data_(data),
        sink_(sink),
        stop_(std::move(stop)),
        folder_(request.run_dir) {}

  Result<TrainResult> run() {
    if (Status s = prepare(); !s) return tl::unexpected(s.error());
    if (Status s = restore(); !s) return tl::unexpected(s.error());
    say_data();
    const std::int64_t wanted = request_.max_steps > 0 ? std::min(request_.max_steps, total_) : total_;
    const double begin = steady_seconds();
    const std::int64_t first = state_.step;
    seconds_before_ = state_.seconds - begin;
    update_limit_ = wanted;
    tracer_.emplace(request_.trace, first + 1, wanted);
    while (state_.step < wanted && !stop_.stop_requested())
      if (Status s = one_step(); !s) return tl::unexpected(s.error());
    write_trace();
    if (Status s = conclude(); !s) return tl::unexpected(s.error());
    return result(first, steady_seconds() - begin);
  }

 private:
  Status prepare() {
    const auto backend = training_backend(config_);
    if (!backend) return tl::unexpected(backend.error());
    auto shape = loader_shape(config_);
    if (!shape) return tl::unexpected(shape.error());
    total_ = config_.steps();
    auto loader = BatchLoader::training(data_, *shape, static_cast<std::uint64_t>(config_.train.seed),
                                        packing_from_string(config_.data.packing).value_or(Packing::fragment));
    if (!loader) return tl::unexpected(loader.error());
    loader_.emplace(std::move(*loader));
    entropy_ = unigram_entropy(data_);
    if (auto held_out = BatchLoader::validation(data_, *shape); held_out) {
      eval_steps_ = std::min(held_out->steps_per_epoch_rounded_up(),
                             std::max<std::int64_t>(1, config_.run.eval_tokens / shape->step_tokens()));
      validation_.emplace(std::move(*held_out));
    } else {
      sink_.event({RunEvent::Kind::warning, 0, "No validation loss: " + held_out.error().message()});
    }
    team_.emplace(threads_for(config_.run.threads));
    auto step = TrainStep::create(config_, *shape, **backend, &*team_,
                                  [this](const MemoryPlan& plan) { return check_memory(plan.total()); });
    if (!step) return tl::unexpected(step.error());
    step_ = std::move(*step);
    step_flops_ = step_->programs().step_flops(shape->accumulation);
    milestones_ = milestone_steps(config_);
    auto provenance = provenance_of(request_, data_);
    if (!provenance) return tl::unexpected(provenance.error());
    provenance_ = std::move(*provenance);
    for (std::int64_t layer = 0; layer < config_.model.n_layers; ++layer)
      for (std::int64_t head = 0; head < config_.model.n_heads; ++head)
        max_logit_names_.push_back(metric::max_logit_of(layer, head));
    if (request_.gemm_rate > 0) sink_.fact("gemm_flops_per_second", request_.gemm_rate);
    if (std::isfinite(entropy_)) sink_.fact("unigram_entropy", entropy_);  // where something is held out
    sink_.fact("uniform_entropy", std::log(static_cast<double>(config_.model.vocab_size)));
    sink_.fact("parameters", static_cast<double>(step_->programs().model.parameters().count()));
    return {};
  }

  // What packing makes of the documents, and how often the run reads them.
  void say_data() {
    const PackingReport& all = loader_->report();
    for (const auto& [name, value] :
         {std::pair("data_tokens", all.tokens_in), std::pair("data_tokens_used", all.tokens_packed),
          std::pair("data_tokens_lost", all.tokens_lost)})
      sink_.fact(name, static_cast<double>(value));
    if (state_.step > 0) return;
    for (const BatchLoader::SourceReport& source : loader_->source_reports(total_))
      sink_.event(
          {RunEvent::Kind::info, 0,
           fmt::format("Text {}: {} tokens in {} documents, {} used and {} lost by packing; the run reads {} "
                       "of them, {:.3g} epochs",
                       source.name, format_integer(source.packing.tokens_in), format_integer(source.packing.documents),
                       format_integer(source.packing.tokens_packed), format_integer(source.packing.tokens_lost),
                       format_integer(source.tokens), source.epochs)});
  }

  // The plan against what is free now, before anything is allocated.
  Status check_memory(std::int64_t planned) const {
    const std::int64_t available = system_memory().available;
    if (!config_.run.memory_guard || available <= 0 || planned <= available) return {};
    const std::string remedy = request_.memory_remedy ? request_.memory_remedy(available) : std::string();
    return refused(
        fmt::format("the run's plan needs {} of memory, {} are free", format_bytes(static_cast<double>(planned)),
                    format_bytes(static_cast<double>(available))),
        (remedy.empty() ? "use a smaller run.micro_batch or model" : remedy) +
            "; --set run.memory_guard=false tries it all the same");
  }

  Status restore() {
    state_.first_loss = state_.loss = state_.val_loss = std::numeric_limits<double>::quiet_NaN();
    remove_stale_temporaries(request_.run_dir);
    bool restored = false;
    if (request_.from) {
      if (Status s = load(*request_.from); !s) return s;
      restored = true;
    } else if (request_.resume) {
      const std::vector<CheckpointFolder> folders = list_checkpoints(request_.run_dir);
      // The newest whole one. An unreadable one is passed over with a word, never silently.
      for (auto folder = folders.rbegin(); folder != folders.rend() && !restored; ++folder) {
        const Status loaded = load(*folder);
        restored = loaded.has_value();
        if (!restored) warn(folder->step, "Checkpoint passed over: " + loaded.error().message());
      }
      sink_.resumed_after(state_.step);
      if (restored) {
        sink_.event(
            {RunEvent::Kind::info, state_.step, fmt::format("Resumed from the checkpoint of step {}", state_.step)});
        say_missing_rows();
      } else if (request_.known_steps > 0) {
        warn(0,
             fmt::format("No checkpoint can be read: the {} steps that were recorded are trained again from the start",
                         request_.known_steps));
      }
    }
    if (!restored) {
      // A checkpoint that failed half-way may have left something.
      step_->initialise(static_cast<std::uint64_t>(config_.train.seed));
    }
    for (const std::int64_t step : set_aside_checkpoints_after(request_.run_dir, state_.step))
      warn(step,
           fmt::format("The checkpoint of step {} was set aside: this run goes on from step {}", step, state_.step));
    return {};
  }

  // A store that is newer or older than the checkpoints beside it: the curves must not look as if they were whole.
  void say_missing_rows() {
    if (state_.step - request_.known_steps < std::max<std::int64_t>(1, config_.run.log_every)) return;
    const std::string text = fmt::format(
        "The store has no rows of steps {} to {}: it is not the one that they were recorded in. The weights "
        "are those of the checkpoint, the curves begin after it",
        request_.known_steps + 1, state_.step);
    log_warning("{}: {}", config_.name, text);
    sink_.event({RunEvent::Kind::warning, state_.step, text, RunEvent::Severity::warning});
  }

  Status load(const CheckpointFolder& folder) {
    auto loaded = load_checkpoint(folder, config_, *step_, request_.also_accepted);
    if (!loaded) return tl::unexpected(loaded.error());
    state_ = loaded->state;
    saved_at_ = state_.step;
    if (!loaded->provenance) return {};
    std::vector<FieldChange> changes = differences(*loaded->provenance, provenance_);
    std::erase_if(changes, [](const FieldChange& c) { return !c.bits; });
    if (!changes.empty())
      warn(state_.step,
           fmt::format("The checkpoint of step {} was made elsewhere: {}. The run goes on; its last bits may differ",
                       state_.step, to_text(changes)));
    return {};
  }

  // For the record of the run and for whoever watches the terminal.
  void warn(std::int64_t step, const std::string& text) {
    log_warning("{}: {}", config_.name, text);
    sink_.event({RunEvent::Kind::warning, step, text});
  }

  Status one_step() {
    const double begin = steady_seconds();
    beat(last_step_seconds_);
    const std::int64_t update = state_.step + 1, tokens = update * config_.train.batch_tokens;
    const double factor = update_factor(config_.optim.schedule, tokens, total_ * config_.train.batch_tokens);
    const TrainStep::Rates rates{config_.optim.adam_lr * factor, config_.optim.muon_lr * factor};
    trace_if_asked(update, update_limit_);
    tracer_->begin_step(update, step_->executor());
    loader_->fill(state_.step, batch_);
    tracer_->batch_ready();
    const StepResult r = step_->run(batch_, rates);
    const bool traced = tracer_->end_step(update, step_->executor());
    last_step_seconds_ = steady_seconds() - begin;
    training_seconds_ += last_step_seconds_;
    squared_lengths_ = squared_document_lengths(batch_);
    all_squared_lengths_ += squared_lengths_;
    state_.step = update;
    state_.tokens = tokens;
    state_.seconds = seconds_before_ + steady_seconds();
    if (update == 1) state_.first_loss = r.loss();
    state_.loss = r.loss();
    if (Status s = watch(r); !s) return s;
    log(r, rates);
    if (traced) write_trace();
    sink_.progress({"training", {}, update, total_});
    const bool look = config_.run.eval_every > 0 && update % config_.run.eval_every == 0;
    if (look || update == total_) log_max_logits();
    if (look && update < total_) evaluate();
    const bool milestone = std::binary_search(milestones_.begin(), milestones_.end(), update);
    const bool due = config_.run.checkpoint_every > 0 && update % config_.run.checkpoint_every == 0;
    const bool asked = request_.checkpoint_now && request_.checkpoint_now->exchange(false);
    const bool again = save_again_at_ && steady_seconds() >= *save_again_at_;
    if ((due || milestone || asked || again) && update < total_) return save_or_try_again(asked);
    return {};
  }

  // A disk that is full now may have room later: training goes on, the older checkpoint stays. A folder that is gone
  // hardly comes back: nobody is to train for days what cannot be saved.
  Status save_or_try_again(bool asked) {
    if (Status s = save(); s) {
      if (save_again_at_) sink_.resolved(RunEvent::Kind::checkpoint, state_.step);
      save_again_at_.reset();
    } else if (!folder_.in_place()) {
      return s;
    } else {
      const std::string text = "No checkpoint: " + s.error().message();
      if (!save_again_at_ || asked) {
        log_warning("{}: {}", config_.name, text);
        sink_.event({RunEvent::Kind::checkpoint, state_.step, text, RunEvent::Severity::critical});
      }
      save_again_at_ = steady_seconds() + save_again_after;
    }
    return {};
  }

  Status watch(const StepResult& r) {
    if (!r.skipped) {
      skipped_in_a_row_ = 0;
      return {};
    }
    ++state_.skipped;
    ++skipped_in_a_row_;
    sink_.event({RunEvent::Kind::non_finite, state_.step,
                 fmt::format("Step skipped: the gradient norm is {}, the loss {}", number_text(r.grad_norm),
                             number_text(r.loss()))});
    if (skipped_in_a_row_ < max_skipped_in_a_row) return {};
    return failed(fmt::format("the gradient was not finite in {} steps in a row, the last of them step {}",
                              skipped_in_a_row_, state_.step),
                  std::string("train it anew with a smaller ") +
                      (config_.optim.matrices == "muon" ? "optim.muon_lr and optim.adam_lr" : "optim.adam_lr") +
                      ": with other settings it is another run, beside this one");
  }

  void log(const StepResult& r, TrainStep::Rates rates) {
    const std::int64_t every = std::max<std::int64_t>(1, config_.run.log_every);
    if (state_.step % every != 0 && state_.step != 1 && state_.step != total_) return;
    MetricEvent event{state_.step, state_.tokens, state_.seconds, unix_seconds(), {}};
    event.values = {{metric::loss, r.loss()},
                    {metric::ce, r.ce},
                    {metric::z_loss, r.z_loss},
                    {metric::adam_lr, rates.adam},
                    {metric::grad_norm, r.grad_norm},
                    {metric::update_norm, r.update_norm},
                    {metric::max_logit, r.max_logit},
                    {metric::tokens_per_second, static_cast<double>(config_.train.batch_tokens) / last_step_seconds_},
                    {metric::process_bytes, static_cast<double>(resident_bytes())}};
    if (request_.gemm_rate > 0) {
      const Utilisation u = utilisation(last_step_seconds_, squared_lengths_);
      event.values.insert(event.values.end(), {{metric::mfu_6nd, u.mfu_6nd},
                                               {metric::mfu_attention, u.mfu_attention},
                                               {metric::mfu_documents, u.mfu_documents},
                                               {metric::hfu, u.hfu}});
    }
    if (step_->programs().update_io.muon_lr.present()) event.values.push_back({metric::muon_lr, rates.muon});
    sink_.metrics(event);
  }

  // Of a step that took so long. squared_lengths: of its documents, added up.
  Utilisation utilisation(double seconds, double squared_lengths) const {
    if (request_.gemm_rate <= 0 || seconds <= 0) return {};
    const auto tokens = static_cast<double>(config_.train.batch_tokens);
    const double available = seconds * request_.gemm_rate;
    const TokenFlops nominal = flops_per_token(config_.model, config_.train.seq_len);
    const double products = static_cast<double>(nominal.body + nominal.head) * tokens;
    const auto of_key = static_cast<double>(flops_per_token(config_.model, 1).attention);
    return {.mfu_6nd = 6 * static_cast<double>(step_->programs().model.parameters().count()) * tokens / available,
            .mfu_attention = static_cast<double>(nominal.total()) * tokens / available,
            .mfu_documents = (products + of_key * squared_lengths) / available,
            .hfu = step_flops_ / available};
  }

  // As many values as there are heads: where the model is looked at, not at every step.
  void log_max_logits() {
    MetricEvent event{state_.step, state_.tokens, state_.seconds, unix_seconds(), {}};
    const std::span<const double> logits = step_->max_logits();
    for (std::size_t i = 0; i < logits.size(); ++i) event.values.push_back({max_logit_names_[i], logits[i]});
    sink_.metrics(event);
  }

  // Somebody wants to know what the operations take now. A trace that is being made serves them too.
  void trace_if_asked(std::int64_t update, std::int64_t last) {
    if (!request_.trace_now || !tracer_->is_over(update) || !request_.trace_now->exchange(false)) return;
    write_trace();
    if (!request_.trace.file.empty() && !trace_in_file_) trace_in_file_ = tracer_->summary();
    asked_for_trace_ = true;
    facts_of_steps_ = false;
    tracer_.emplace(TraceRequest{}, update - 1, last);
  }

  // A trace that cannot be written costs nobody the run.
  void write_trace() {
    if (Status s = tracer_->write(); !s) warn(state_.step, "No trace: " + s.error().message());
    const auto& measured = tracer_->summary();
    if (!measured || facts_of_steps_) return;
    facts_of_steps_ = true;
    const auto steps = static_cast<double>(measured->last_step - measured->first_step + 1);
    sink_.fact(step_seconds_fact, measured->seconds / steps);
    if (std::exchange(asked_for_trace_, false))
      sink_.event({RunEvent::Kind::info, measured->last_step,
                   fmt::format("Operations measured over steps {} to {}: {} a step", measured->first_step,
                               measured->last_step, format_duration(measured->seconds / steps))});
    for (const OperationTotal& total : measured->operations)
      sink_.fact(fmt::format("{}.{}", step_seconds_fact, total.op), total.seconds / steps);
    // Last: who sees it sees all.
    sink_.fact(step_seconds_at_fact, static_cast<double>(measured->last_step));
  }

  void evaluate() {
    if (!validation_ || evaluated_at_ == state_.step) return;
    beat(last_step_seconds_ * static_cast<double>(eval_steps_ + 1));
    const TrainStep::Evaluation seen = step_->evaluate(*validation_, eval_steps_, data_.coding().token_bytes());
    state_.val_loss = seen.loss;
    val_bpb_ = seen.bits_per_byte();
    evaluated_at_ = state_.step;
    state_.seconds = seconds_before_ + steady_seconds();
    sink_.metrics({state_.step,
                   state_.tokens,
                   state_.seconds,
                   unix_seconds(),
                   {{metric::val_loss, state_.val_loss}, {metric::val_bpb, val_bpb_}}});
  }

  Status gone() const {
    return failed(
        fmt::format("the run's folder {} {}: step {} cannot be saved, {}", request_.run_dir.string(), folder_.fate(),
                    state_.step,
                    saved_at_ > 0 ? fmt::format("the last checkpoint is of step {}", saved_at_) : "nor was any other"),
        "bring the workspace back to its place, or name its new one with --workspace, and resume the run");
  }

  Status save() {
    beat(60);
    sink_.settle();
    // Nothing is made anew in the place of a workspace that was moved.
    if (!folder_.in_place()) return gone();
    // It may go at any instant.
    if (Status s = save_checkpoint(request_.run_dir, config_, provenance_, *step_, state_); !s)
      return folder_.in_place() ? s : gone();
    saved_at_ = state_.step;
    prune_checkpoints(request_.run_dir, config_.run.keep_last, milestones_);
    sink_.event({RunEvent::Kind::checkpoint, state_.step, fmt::format("Checkpoint of step {}", state_.step)});
    return {};
  }

  // The last evaluation and checkpoint. Nothing to save before the first step, nor twice.
  Status conclude() {
    if (state_.step == 0) return {};
    if (state_.step == total_) {
      sink_.progress({"evaluation", {}, total_, total_});
      evaluate();
    }
    return saved_at_ == state_.step ? Status{} : save();
  }

  void beat(double expected_seconds) { sink_.beat(10 + 5 * expected_seconds); }

  TrainResult result(std::int64_t first, double elapsed) const {
    TrainResult r;
    r.steps = state_.step;
    r.tokens = state_.tokens;
    r.first_loss = state_.first_loss;
    r.loss = state_.loss;
    r.val_loss = state_.val_loss;
    r.val_bpb = val_bpb_;
    r.unigram_entropy = entropy_;
    r.seconds = seconds_before_ + steady_seconds();
    const double tokens = static_cast<double>((state_.step - first) * config_.train.batch_tokens);
    r.tokens_per_second = training_seconds_ > 0 ? tokens / training_seconds_ : elapsed > 0 ? tokens / elapsed : 0;
    r.utilisation =
        utilisation(static_cast<double>(config_.train.batch_tokens) / r.tokens_per_second,
                    all_squared_lengths_ / static_cast<double>(std::max<std::int64_t>(1, state_.step - first)));
    r.parameters = step_->programs().model.parameters().count();
    r.plan_bytes = step_->executor().plan().total();
    r.peak_bytes = peak_resident_bytes();
    if (!request_.trace.file.empty()) r.trace = trace_in_file_ ? trace_in_file_ : tracer_->summary();
    r.complete = state_.step >= total_;
    return r;
  }

  const TrainRequest& request_;
  const RunConfig& config_;
  const Dataset& data_;
  RunSink& sink_;
  std::stop_token stop_;
  const HeldFolder folder_;

  std::optional<BatchLoader> loader_, validation_;
  std::optional<StepTracer> tracer_;
  bool facts_of_steps_ = false;  // told
  bool asked_for_trace_ = false;
  std::optional<TraceSummary> trace_in_file_;  // before others were asked for
  std::int64_t update_limit_ = 0;              // of this process
  StepBatch batch_;
  Provenance provenance_;
  std::vector<std::int64_t> milestones_;
  std::optional<ThreadTeam> team_;
  std::unique_ptr<TrainStep> step_;
  std::int64_t total_ = 0, eval_steps_ = 0, evaluated_at_ = -1, saved_at_ = -1;
  std::vector<std::string> max_logit_names_;
  double val_bpb_ = std::numeric_limits<double>::quiet_NaN();
  double step_flops_ = 0, entropy_ = 0, seconds_before_ = 0, last_step_seconds_ = 0, training_seconds_ = 0;
  double squared_lengths_ = 0, all_squared_lengths_ = 0;  // of the last step's documents; of all steps'
  int skipped_in_a_row_ = 0;
  std::optional<double> save_again_at_;  // steady seconds; set while the last attempt failed
  TrainerState state_;
};

}  // namespace

Result<Provenance> provenance_of(const TrainRequest& request, const Dataset& data) {
  const RunConfig& config = request.config;
  const auto backend = training_backend(config);
  if (!backend) return tl::unexpected(backend.error());
  Provenance p = provenance_of_build();
  p.config_hash = config_hash(config);
  p.corpus = config.data.mixture.empty() ? config.data.corpus : config.data.mixture;
  p.corpus_sha256 = data.corpus_hash();
  p.tokenizer = config.data.tokenizer;
  p.tokenizer_sha256 = data.coding().json().empty() ? "" : data.coding().sha256();
  p.environment = current_fingerprint((*backend)->name(), threads_for(config.run.threads));
  return p;
}

Result<TrainResult> train(const TrainRequest& request, const Dataset& data, RunSink& sink, std::stop_token stop) {
  return Trainer(request, data, sink, std::move(stop)).run();
}

}  // namespace stacklab
