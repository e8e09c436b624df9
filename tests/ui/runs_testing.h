// A page of runs over a real store, with as many runs as a test wants.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>

#include <QUndoStack>
#include <cmath>
#include <memory>

#include "engine/config/config_io.h"
#include "engine/service/job_steps.h"
#include "engine/store/store.h"
#include "tests/temporary_folder.h"
#include "tests/ui/ui_test.h"
#include "ui/pages/runs/runs_page.h"

namespace stacklab::ui {

inline RunConfig runs_config(int n) {
  RunConfig config;
  config.name = fmt::format("run-{:05}", n);
  config.model = {.vocab_size = 256,
                  .d_model = 32,
                  .n_layers = 2 + n % 2,
                  .n_heads = 2,
                  .n_kv_heads = 1,
                  .head_dim = 16,
                  .intermediate = 64,
                  .max_seq_len = 64};
  config.optim.matrices = n % 3 ? "muon" : "adamw";
  config.optim.muon_lr = 1e-3 * (1 + n % 4);
  config.optim.qk_clip = 0;
  config.data.corpus = "tinyworld";
  config.train.seed = n % 3;
  config.train.batch_tokens = 256;
  config.train.seq_len = 64;
  config.train.tokens = 256 * 400;
  return config;
}

// Puts them straight into the store, in one transaction: as a long life of a workspace would have.
inline void put_runs(const std::filesystem::path& workspace, int count) {
  if (auto store = Store::open(workspace); !store) throw std::runtime_error(store.error().message());
  SQLite::Database db((workspace / "stacklab.db").string(), SQLite::OPEN_READWRITE);
  SQLite::Transaction all(db);
  db.exec("INSERT OR IGNORE INTO metric_names (id, name) VALUES (1, 'loss')");
  SQLite::Statement run(db,
                        "INSERT INTO runs (number, id, name, folder, state, cause, config_json, corpus_sha256, "
                        "total_steps, created, finished, session, last_step, last_tokens, last_seconds, loss_step, "
                        "first_loss, loss, val_step, val_loss, commit_id, tokens_per_second) VALUES "
                        "(?, ?, ?, ?, ?, ?, ?, ?, 400, ?, ?, 1, ?, ?, ?, ?, 5.5, ?, ?, ?, 'b41e7f0c2d11', ?)");
  SQLite::Statement session(
      db,
      "INSERT INTO sessions (run, session, pid, process_start, boot_id, host, namespace, "
      "commit_id, started, ended, next_by) VALUES (?, 1, 1, 1, '', '', '', 'b41e7f0c2d11', 1, 2, 3)");
  SQLite::Statement metric(db, "INSERT INTO metrics (run, metric, step, value) VALUES (?, 1, ?, ?)");
  SQLite::Statement tag(db, "INSERT INTO tags (run, tag) VALUES (?, ?)");
  for (int n = 0; n < count; ++n) {
    const RunConfig config = runs_config(n);
    const std::string id = fmt::format("{:012x}", 0x4c1a00 + n * 7919);
    const bool failed = n % 7 == 3, paused = n % 11 == 5;
    const int step = failed ? 100 + n % 200 : paused ? 48 : 400;
    run.reset();
    run.bind(1, n);
    run.bind(2, id);
    run.bind(3, config.name);
    run.bind(4, config.name + "-" + id);
    run.bind(5, failed ? "failed" : paused ? "paused" : "finished");
    run.bind(6, failed ? "out of memory" : "");
    run.bind(7, to_json(config));
    run.bind(8, std::string(64, 'e'));
    run.bind(9, 1.7e9 + n * 60.0);
    run.bind(10, failed || paused ? 0.0 : 1.7e9 + n * 60.0 + 50);
    run.bind(11, step);
    run.bind(12, step * 256);
    run.bind(13, step * 0.3);
    run.bind(14, step);
    if (n % 13 == 4)
      run.bind(15);
    else
      run.bind(15, 2.8 + 0.001 * ((n * 37) % 500));
    run.bind(16, step);
    run.bind(17, 2.9 + 0.001 * ((n * 37) % 500));
    run.bind(18, 800.0 + n % 50);
    run.exec();
    session.reset();
    session.bind(1, n);
    session.exec();
    if (n < 40)
      for (int s = 1; s <= step; s += 4) {
        metric.reset();
        metric.bind(1, n);
        metric.bind(2, s);
        metric.bind(3, 2.8 + 2.7 * std::exp(-s / 40.0) + 0.02 * ((s * 7919 + n) % 5));
        metric.exec();
      }
    if (n % 4 == 0) {
      tag.reset();
      tag.bind(1, n);
      tag.bind(2, "ablation");
      tag.exec();
    }
    if (n % 6 == 0) {
      tag.reset();
      tag.bind(1, n);
      tag.bind(2, "stack100m");
      tag.exec();
    }
  }
  all.commit();
}

// Trains nothing; a test looks at what was asked for.
inline JobSteps idle_steps() {
  JobSteps steps;
  steps.ensure_corpus = [](std::string_view name, const std::filesystem::path& workspace, const CorpusProgress&,
                           std::stop_token) -> Result<Corpus> {
    DocumentSet documents;
    for (int i = 0; i < 20; ++i)
      documents.add("In the beginning was a small text, and it was number " + std::to_string(i) + ".");
    CorpusInfo info;
    info.name = name;
    const std::filesystem::path dir = workspace / "data" / name;
    if (!std::filesystem::exists(dir))
      if (const Status made = write_corpus(dir, info, documents); !made) return tl::unexpected(made.error());
    return Corpus::open(dir);
  };
  steps.train = [](const TrainRequest& request, const Dataset&, RunSink& sink,
                   std::stop_token stop) -> Result<TrainResult> {
    TrainResult result;
    sink.metrics({1, 256, 0.1, 1.7e9, {{metric::loss, 5.0}}});
    result.steps = 1;
    while (!stop.stop_requested()) {
      sink.beat(10);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));  // as a step takes
    }
    result.tokens = request.config.train.batch_tokens;
    result.complete = false;
    return result;
  };
  return steps;
}

class RunsTest : public testing::Test {
 protected:
  RunsTest() { look().set_mode(ThemeMode::light); }
  ~RunsTest() override { page.reset(); }

  void open(int count, QSize size = QSize(1400, 900)) {
    put_runs(folder.path(), count);
    LinkOptions options;
    options.open = [path = folder.path()]() -> Result<OpenedWorkspace> {
      auto service = open_job_service(path, idle_steps());
      if (!service) return tl::unexpected(service.error());
      return OpenedWorkspace{std::shared_ptr<JobService>(std::move(*service)), nullptr};
    };
    options.active_period_ms = options.idle_period_ms = 20;
    link = std::make_unique<WorkspaceLink>(std::move(options));
    page = std::make_unique<RunsPage>(link.get(), &undo);
    page->resize(size);
    page->show();
    link->open();
    ASSERT_TRUE(settle());
  }
  bool settle() {
    return wait_until([this] { return page->settled(); });
  }
  bool shows(int count) {
    return wait_until([&] { return page->model()->run_count() == count && page->settled(); });
  }
  int loaded_row(std::int64_t number) const { return page->model()->row_of(number); }
  QString cell(std::int64_t number, const QString& column) const {
    return page->model()->index(loaded_row(number), page->model()->column_of(column)).data().toString();
  }
  void choose(const std::vector<std::int64_t>& numbers) {
    page->view()->select_numbers(numbers, numbers.front());
    wait_until([&] { return page->chosen().size() == numbers.size() && page->settled(); });
  }

  TemporaryFolder folder;
  QUndoStack undo;
  std::unique_ptr<WorkspaceLink> link;
  std::unique_ptr<RunsPage> page;
};

}  // namespace stacklab::ui
