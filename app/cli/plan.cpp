// What a run will need, before it begins.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>

#include "app/cli/common.h"
#include "app/cli/console.h"
#include "app/cli/levers.h"
#include "engine/base/text.h"
#include "engine/config/config_io.h"
#include "engine/service/planning.h"

namespace stacklab::cli {
namespace {

constexpr std::size_t largest_shown = 10;  // buffers

struct Options {
  std::string config;
  std::string gpu = "cpu";
  std::string budget;
};

std::string megabytes(std::int64_t bytes) { return bytes == 0 ? "–" : format_bytes(static_cast<double>(bytes)); }

std::string shape_text(const Shape& s) {
  std::string text;
  for (int i = 0; i < s.rank; ++i) text += fmt::format("{}{}", i > 0 ? "x" : "", s[i]);
  return text;
}

// What the closed forms say of it, beside the plan.
std::string estimates(const TrainingMemory& m) {
  const MemoryEstimate& e = m.estimate;
  const PlannedProgram& most = m.programs[m.largest_program];
  const auto at_peak = [&](std::initializer_list<BufferClass> classes) {
    std::int64_t bytes = 0;
    for (const BufferClass c : classes) {
      const auto i = static_cast<std::size_t>(c);
      bytes += m.persistent_by_class[i] + most.live_by_class[i];
    }
    return bytes;
  };
  const auto range = [](double least, double most_bytes) {
    return format_bytes(least) + (most_bytes > least ? " to " + format_bytes(most_bytes) : "");
  };
  const std::int64_t state = at_peak({BufferClass::parameter, BufferClass::gradient, BufferClass::optimiser});
  const std::int64_t activations = at_peak({BufferClass::activation}), workspace = at_peak({BufferClass::workspace});
  return table(
             {{"estimate, in bf16 on a GPU", "20 to 34 B a channel", "list of tensors", "this plan at its peak"},
              {"parameters, gradients, optimiser", format_bytes(static_cast<double>(e.state)),
               format_bytes(static_cast<double>(e.state)), megabytes(state)},
              {"activations", range(e.trunk_least, e.trunk_most), format_bytes(e.listed_trunk), megabytes(activations)},
              {"loss head; workspace", format_bytes(e.head), format_bytes(e.listed_head), megabytes(workspace)},
              {"together", range(e.least(), e.most()), format_bytes(e.listed()), megabytes(m.peak_bytes())}},
             {false, true, true, true}) +
         "The closed forms keep every gradient and both halves of the step at once, and store what automatic\n"
         "differentiation would. The plan counts what is alive in this engine at one instant, in its own types: a\n"
         "gradient lives until it is used, a buffer until it is read last, and workspace is what this backend asks "
         "for.\n";
}

std::string for_people(const TrainingMemory& m, const RunConfig& config, const Levers& levers) {
  const PlannedProgram& most = m.programs[m.largest_program];
  std::string text =
      fmt::format("{} on {}, {}: {} tokens a step, cut into {} of {} x {}\n\n", config.name, m.device,
                  config.train.precision, format_integer(m.shape.step_tokens()),
                  m.shape.accumulation == 1 ? "one batch" : fmt::format("{} micro-batches", m.shape.accumulation),
                  m.shape.micro_batch, m.shape.seq_len);
  std::vector<std::vector<std::string>> classes = {{"class", "whole run", "at the peak"}};
  for (std::size_t c = 0; c < buffer_class_count; ++c)
    if (m.persistent_by_class[c] > 0 || most.live_by_class[c] > 0)
      classes.push_back({std::string(to_string(static_cast<BufferClass>(c))), megabytes(m.persistent_by_class[c]),
                         megabytes(most.live_by_class[c])});
  classes.push_back({"together", megabytes(m.persistent_bytes), megabytes(most.live_bytes)});
  classes.push_back({"arena", megabytes(m.persistent_bytes), megabytes(m.step_bytes)});
  text += table(classes, {false, true, true});
  text += fmt::format("\npeak     at operation {} of {} in \"{}\": {}{}\n", most.peak_index + 1, most.operations,
                      most.name, most.peak_op, most.peak_label.empty() ? "" : " in " + most.peak_label);

  std::vector<const PlannedBuffer*> sorted;
  for (const PlannedBuffer& b : m.buffers)
    if (b.used && (b.program.empty() || b.program == most.name)) sorted.push_back(&b);
  std::stable_sort(sorted.begin(), sorted.end(), [](const PlannedBuffer* a, const PlannedBuffer* b) {
    return a->buffer.bytes() > b->buffer.bytes();
  });
  sorted.resize(std::min(sorted.size(), largest_shown));
  std::vector<std::vector<std::string>> largest = {{"largest buffers", "class", "type", "shape", "size", "operations"}};
  for (const PlannedBuffer* b : sorted)
    largest.push_back(
        {b->buffer.name, std::string(to_string(b->buffer.cls)), name_of(b->buffer.dtype), shape_text(b->buffer.shape),
         megabytes(b->buffer.bytes()),
         b->program.empty() ? "all" : fmt::format("{} to {}", b->buffer.first_use + 1, b->buffer.last_use + 1)});
  text += "\n" + table(largest, {false, false, false, false, true, true});
  text += fmt::format("\nallocated  {} ({} bytes); the process holds up to {} more\n", megabytes(m.peak_bytes()),
                      format_integer(m.peak_bytes()), megabytes(process_overhead_bytes));
  text += fmt::format("{:<10} {}: {}\n", m.budget_bytes == m.available_bytes ? "free now" : "budget",
                      megabytes(m.budget_bytes), m.fits ? "it fits" : "it does not fit");
  text += m.largest_micro_batch > 0
              ? fmt::format("the largest micro-batch that fits has {} sequences\n", m.largest_micro_batch)
              : std::string("no micro-batch fits\n");
  text += "\n" + lever_table(levers) + "\n" + estimates(m) + "\n";
  text += fmt::format("on the disk: {} for a checkpoint, {} at once: {}\n", megabytes(m.checkpoint_bytes),
                      m.checkpoints, megabytes(m.checkpoint_bytes * m.checkpoints));
  return text;
}

void write_by_class(JsonWriter& w, std::string_view key, const std::array<std::int64_t, buffer_class_count>& bytes) {
  w.key(key);
  w.begin_object();
  for (std::size_t c = 0; c < buffer_class_count; ++c)
    if (bytes[c] > 0) w.member(to_string(static_cast<BufferClass>(c)), bytes[c]);
  w.end_object();
}

void write_buffer(JsonWriter& w, const PlannedBuffer& b) {
  w.begin_object();
  w.member("name", b.buffer.name);
  w.member("class", to_string(b.buffer.cls));
  w.member("dtype", name_of(b.buffer.dtype));
  w.key("shape");
  w.begin_array();
  for (int i = 0; i < b.buffer.shape.rank; ++i) w.value(b.buffer.shape[i]);
  w.end_array();
  w.member("bytes", b.buffer.bytes());
  w.member("arena", b.program.empty() ? "persistent" : "step");
  const bool step = b.used && !b.program.empty();
  w.key("program"), step ? w.value(b.program) : w.null();
  w.key("first_use"), step ? w.value(b.buffer.first_use) : w.null();
  w.key("last_use"), step ? w.value(b.buffer.last_use) : w.null();
  w.key("offset"), b.used ? w.value(b.offset) : w.null();
  w.end_object();
}

std::string as_json(const TrainingMemory& m, const RunConfig& config, const Levers& levers) {
  JsonWriter w;
  w.begin_object();
  w.member("name", config.name);
  w.member("gpu", "cpu");
  w.member("device", m.device);
  w.member("peak_bytes", m.peak_bytes());
  w.member("checkpoint_bytes", m.checkpoint_bytes);
  w.member("checkpoints_at_once", m.checkpoints);
  w.member("persistent_bytes", m.persistent_bytes);
  w.member("step_bytes", m.step_bytes);
  w.member("overhead_bytes", process_overhead_bytes);
  w.member("fits", m.fits);
  w.member("budget_bytes", m.budget_bytes);
  w.member("available_bytes", m.available_bytes);
  w.member("micro_batch", m.shape.micro_batch);
  w.member("accumulation", m.shape.accumulation);
  w.member("seq_len", m.shape.seq_len);
  w.member("largest_micro_batch", m.largest_micro_batch);
  write_by_class(w, "persistent_by_class", m.persistent_by_class);
  w.member("peak_program", m.programs[m.largest_program].name);
  w.key("levers"), write_levers(w, levers);
  const MemoryEstimate& e = m.estimate;
  w.key("estimate");
  w.begin_object();
  w.member("state_bytes", e.state);
  w.member("least_bytes", e.least());
  w.member("most_bytes", e.most());
  w.member("listed_bytes", e.listed());
  w.member("trunk_least_bytes", e.trunk_least);
  w.member("trunk_most_bytes", e.trunk_most);
  w.member("listed_trunk_bytes", e.listed_trunk);
  w.member("head_bytes", e.head);
  w.member("listed_head_bytes", e.listed_head);
  w.end_object();
  w.key("programs");
  w.begin_array();
  for (const PlannedProgram& p : m.programs) {
    w.begin_object();
    w.member("name", p.name);
    w.member("operations", p.operations);
    w.member("arena_bytes", p.arena_bytes);
    w.member("live_bytes", p.live_bytes);
    w.key("peak");
    w.begin_object();
    w.member("index", p.peak_index);
    w.member("op", p.peak_op);
    w.member("label", p.peak_label);
    w.end_object();
    write_by_class(w, "live_by_class", p.live_by_class);
    w.end_object();
  }
  w.end_array();
  w.key("buffers");
  w.begin_array();
  for (const PlannedBuffer& b : m.buffers) write_buffer(w, b);
  w.end_array();
  w.end_object();
  return w.text();
}

Status memory(Context& context, const Options& options) {
  Result<RunConfig> config = config_of(options.config, context.common);
  if (!config) return tl::unexpected(config.error());
  if (options.gpu != "cpu")
    return usage_error(fmt::format("--gpu {}: plans for it are not built yet", printable(options.gpu)),
                       "this build plans for: cpu");
  std::int64_t budget = 0;
  if (!options.budget.empty()) {
    const std::optional<std::int64_t> bytes = parse_bytes(options.budget);
    if (!bytes || *bytes == 0)
      return usage_error(fmt::format("--budget: \"{}\" is not a number of bytes", printable(options.budget)),
                         "write it as 4GiB, 500MB or 4294967296");
    budget = *bytes;
  }
  if (Status valid = check_step(*config); !valid) return valid;
  const Result<TrainingMemory> plan = plan_training_memory(*config, budget);
  if (!plan) return tl::unexpected(plan.error());
  const Result<Levers> levers = memory_levers(*config, plan->budget_bytes);
  if (!levers) return tl::unexpected(levers.error());
  context.console.print(for_people(*plan, *config, *levers));
  context.console.print_json(as_json(*plan, *config, *levers));
  return {};
}

}  // namespace

Verb plan_verb() {
  const auto options = std::make_shared<Options>();
  Verb memory_verb{
      "memory",
      "Every buffer of a run, its peak, and the largest micro-batch that fits",
      "stacklab plan memory experiments/ladder-3.9m.json --gpu cpu --budget 4GiB",
      {{"CONFIG", "", "A config file", &options->config, true},
       {"--gpu", "NAME", "What to plan for: cpu (default)", &options->gpu},
       {"--budget", "BYTES", "Hold the plan against this much memory, for example 4GiB (default: what is free now)",
        &options->budget}},
      {},
      [options](Context& context) { return memory(context, *options); },
      "The step is built as training would build it, and nothing is run or allocated. What is shown is what training\n"
      "then allocates (plan_bytes of `stacklab train --json`); the process needs a little more, its peak_bytes.\n"
      "Levers are what makes it smaller, in the order in which to reach for them: each as far as it must go to fit.\n"
      "Closed forms for models that nobody has built stand beside it as an estimate."};
  return {"plan", "What a run will need",   "stacklab plan memory experiments/first-run.json",
          {},     {std::move(memory_verb)}, {},
          {}};
}

}  // namespace stacklab::cli
