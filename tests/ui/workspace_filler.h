// Fills a workspace's store as a training run would.
#pragma once

#include <cmath>
#include <filesystem>

#include "engine/config/config_io.h"
#include "engine/store/store.h"

namespace stacklab::ui {

inline void report_step(RunSink& sink, std::int64_t step, std::int64_t total, double loss = 0) {
  const double x = static_cast<double>(step) / static_cast<double>(total);
  if (loss == 0) loss = 1.6 + 3.9 * std::exp(-12 * x) + 0.02 * static_cast<double>(step * 2654435761 % 7);
  MetricEvent event{step, step * 4096, 0.2 * static_cast<double>(step), 1e9 + static_cast<double>(step), {}};
  event.values = {{metric::loss, loss},
                  {metric::adam_lr, 3e-3 * (1 - x)},
                  {metric::grad_norm, 0.4 + 2 * std::exp(-9 * x)},
                  {metric::tokens_per_second, 13000 + static_cast<double>(step % 13) * 40}};
  sink.metrics(event);
  if (step % 50 == 0)
    sink.metrics({step, step * 4096, 0.2 * static_cast<double>(step), 1e9, {{metric::val_loss, loss + 0.06}}});
  if (step % 1000 == 0) sink.event({RunEvent::Kind::checkpoint, step, "Checkpoint of step " + std::to_string(step)});
  sink.progress({"training", {}, step, total});
}

// One finished run of so many steps; the loss of step `spike` is 9.
inline void fill_workspace(const std::filesystem::path& workspace, std::int64_t steps, std::int64_t spike) {
  auto store = Store::open(workspace);
  if (!store) throw std::runtime_error(store.error().message());
  RunConfig config;
  config.name = "first-run";
  config.model.vocab_size = 256;
  config.data.corpus = "tinyworld";
  config.train.tokens = steps * config.train.batch_tokens;
  ClaimRequest request;
  request.id = config_hash(config);
  request.name = config.name;
  request.folder = config.name + "-" + request.id;
  request.config_json = to_json(config);
  request.corpus_sha256 = std::string(64, 'a');
  request.total_steps = steps;
  auto claim = (*store)->claim(request, {});
  if (!claim) throw std::runtime_error(claim.error().message());
  {
    const auto sink = (*store)->sink(*claim);
    sink->fact("unigram_entropy", 2.9);
    sink->fact("parameters", 117120);
    for (std::int64_t step = 1; step <= steps; ++step) report_step(*sink, step, steps, step == spike ? 9 : 0);
  }
  Completion completion;
  completion.parameters = 117120;
  completion.tokens_per_second = 13000;
  if (const Status ended = (*store)->end(*claim, completion); !ended) throw std::runtime_error(ended.error().message());
}

}  // namespace stacklab::ui
