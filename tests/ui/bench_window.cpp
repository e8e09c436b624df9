// What the whole window costs, over a store as a long life leaves it: a thousand runs with twelve metrics each, one of
// a million steps, and another that trains meanwhile. Run by hand: bench_window [FOLDER] (kept and used again).
#include <sys/resource.h>

#include <QSignalSpy>
#include <cstdio>
#include <fstream>
#include <thread>

#include "engine/store/pyramid.h"
#include "tests/ui/real_window.h"
#include "tests/ui/watchdog.h"
#include "tests/ui/workspace_filler.h"

namespace stacklab::ui {
namespace {

constexpr int runs = 1000, metrics_each = 12;
constexpr std::int64_t long_run_steps = 1'000'000;

void fill(const std::filesystem::path& workspace) {
  std::filesystem::create_directories(workspace);
  put_runs(workspace, runs);
  {
    SQLite::Database db((workspace / "stacklab.db").string(), SQLite::OPEN_READWRITE);
    SQLite::Transaction all(db);
    SQLite::Statement name(db, "INSERT OR IGNORE INTO metric_names (id, name) VALUES (?, ?)");
    SQLite::Statement value(db, "INSERT OR IGNORE INTO metrics (run, metric, step, value) VALUES (?, ?, ?, ?)");
    for (int m = 1; m <= metrics_each; ++m) {
      if (m > 1) {
        name.reset();
        name.bind(1, m);
        name.bind(2, "metric_" + std::to_string(m));
        name.exec();
      }
      for (int run = 0; run < runs; ++run)
        for (int step = 1; step <= 20; ++step) {
          value.reset();
          value.bind(1, run);
          value.bind(2, m);
          value.bind(3, step);
          value.bind(4, 1.0 / step + m);
          value.exec();
        }
    }
    all.commit();
  }
  // As a run of days leaves it: a row each step, summed up.
  fill_workspace(workspace, 100, 50);
  SQLite::Database db((workspace / "stacklab.db").string(), SQLite::OPEN_READWRITE);
  SQLite::Transaction all(db);
  const std::int64_t number = db.execAndGet("SELECT max(number) FROM runs").getInt64();
  SQLite::Statement step(
      db,
      "WITH RECURSIVE n(s) AS (SELECT 101 UNION ALL SELECT s + 1 FROM n WHERE s < ?2) INSERT INTO steps "
      "(run, step, tokens, seconds, unix_time) SELECT ?1, s, s * 4096, s * 0.2, 1e9 + s FROM n");
  step.bind(1, number);
  step.bind(2, long_run_steps);
  step.exec();
  SQLite::Statement value(
      db,
      "WITH RECURSIVE n(s) AS (SELECT 101 UNION ALL SELECT s + 1 FROM n WHERE s < ?2) INSERT INTO metrics "
      "(run, metric, step, value) SELECT ?1, m.id, s, 1 + 100.0 / s + 0.02 * (s * 7919 % 7) FROM n, "
      "(SELECT id FROM metric_names WHERE name IN ('loss', 'adam_lr', 'grad_norm', "
      "'tokens_per_second')) AS m");
  value.bind(1, number);
  value.bind(2, long_run_steps);
  value.exec();
  SQLite::Statement run(db, "UPDATE runs SET last_step = ?2, total_steps = ?2 WHERE number = ?1");
  run.bind(1, number);
  run.bind(2, long_run_steps);
  run.exec();
  store::build_pyramids(db);
  all.commit();
}

double megabytes_resident() {
  std::ifstream status("/proc/self/statm");
  long pages = 0, resident = 0;
  status >> pages >> resident;
  return static_cast<double>(resident) * 4096 / (1 << 20);
}

void row(const char* what, double value, const char* unit, double limit) {
  std::printf("%-52s %9.1f %-4s  (at most %.0f)%s\n", what, value, unit, limit, value <= limit ? "" : "   OVER");
  std::fflush(stdout);
}

// As training does: a step is a row with its metrics, on threads that leave nothing idle.
JobSteps busy_steps() {
  JobSteps steps = idle_steps();
  steps.train = [](const TrainRequest& request, const Dataset&, RunSink& sink,
                   std::stop_token stop) -> Result<TrainResult> {
    std::vector<std::jthread> burning;
    for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i)
      burning.emplace_back([](const std::stop_token& end) {
        volatile double x = 1;
        while (!end.stop_requested()) x = x * 1.0000001;
      });
    TrainResult result;
    while (!stop.stop_requested()) {
      volatile double x = 1;
      for (int i = 0; i < 2'000'000; ++i) x = x * 1.0000001;
      report_step(sink, ++result.steps, request.config.steps());
      sink.beat(10);
    }
    result.complete = false;
    return result;
  };
  return steps;
}

int bench(const std::filesystem::path& workspace) {
  if (!std::filesystem::exists(workspace / "stacklab.db")) {
    std::printf("filling %s...\n", workspace.c_str());
    fill(workspace);
  }
  const double before = megabytes_resident();
  WindowOptions options;
  options.workspace_path = QString::fromStdString(workspace.string());
  options.link.open = [workspace]() -> Result<OpenedWorkspace> {
    auto service = open_job_service(workspace, busy_steps());
    if (!service) return tl::unexpected(service.error());
    return OpenedWorkspace{std::shared_ptr<JobService>(std::move(*service)), nullptr};
  };
  options.link.system_info = [workspace] { return system_info(workspace); };
  QElapsedTimer clock;
  clock.start();
  auto window = std::make_unique<MainWindow>(options);
  window->resize(1600, 1000);
  window->show();
  const double made = static_cast<double>(clock.elapsed());
  Watchdog opening;
  window->open();
  if (!wait_until([&] { return window->settled(); }, 60000)) return 1;
  row("opening the workspace", static_cast<double>(clock.elapsed()), "ms", 1000);
  std::printf("  of which the window itself %.0f ms\n", made);
  row("longest block while opening", opening.worst_wall, "ms", 100);

  RunConfig training = runs_config(99'999);
  training.name = "training";
  training.train.tokens = 256 * 1'000'000;
  window->link()->submit(training, {});
  wait_until(
      [&] { return window->link()->can_steer() && !window->runs_page()->facts_text().contains("1,001 runs, 0"); });
  QElapsedTimer going;
  going.start();
  wait_until([&] { return going.elapsed() > 3000; }, 10000);

  double cpu = 0, wall = 0;
  const auto watched = [&](const char* what, double limit, const std::function<void()>& call) {
    double slowest = 0;
    Watchdog dog;
    for (int i = 0; i < 5; ++i) {
      QElapsedTimer one;
      one.start();
      call();
      QApplication::processEvents();  // drawn
      slowest = std::max(slowest, static_cast<double>(one.nsecsElapsed()) * 1e-6);
      bool turned = false;
      QTimer::singleShot(150, [&] { turned = true; });
      wait_until([&] { return turned; });
    }
    cpu = std::max(cpu, dog.worst_cpu);
    wall = std::max(wall, dog.worst_wall);
    row(what, slowest, "ms", limit);
    std::printf("  longest turn %.1f ms of its own time, %.1f ms by the clock\n", dog.worst_cpu, dog.worst_wall);
  };
  const QStringList pages = window->page_names();
  int next = 0;
  watched("switching pages", 200, [&] { window->show_page(pages[++next % pages.size()]); });
  const auto long_run = [&] {
    for (int i = 0; i < window->monitor()->runs()->rowCount(); ++i)
      if (window->monitor()->runs()->run_at(i).summary.step == long_run_steps)
        return window->monitor()->runs()->run_at(i).summary.id;
    return RunId();
  }();
  going.restart();
  window->monitor()->show_run(long_run, std::nullopt);
  Watchdog loading;
  wait_until([&] { return window->settled(); }, 120000);
  row("reading a run of a million steps", static_cast<double>(going.elapsed()), "ms", 60000);
  row("longest block meanwhile", loading.worst_wall, "ms", 100);
  int zoom = 0;
  watched("zooming in it", 100, [&] {
    ++zoom;
    window->monitor()->charts()->view()->push({AxisRange{1000.0 * zoom, 900'000.0 - 5000 * zoom}, {}});
  });
  window->show_page(QStringLiteral("runs"));
  RunsPage* page = window->runs_page();
  watched("sorting a thousand runs", 200, [&] { page->sort_by(QStringLiteral("loss"), (++zoom & 1) != 0); });
  watched("filtering a thousand runs", 200,
          [&] { page->filter()->set_text((++zoom & 1) ? QStringLiteral("tag:ablation") : QString()); });
  watched("grouping a thousand runs", 200,
          [&] { page->set_group((++zoom & 1) ? QStringLiteral("optim.matrices") : QString()); });
  watched("nothing in particular", 100, [] {});
  row("longest block of the window, by the clock", wall, "ms", 100);
  row("longest block of the window, of its own time", cpu, "ms", 100);
  row("memory of the process", megabytes_resident(), "MiB", 400);
  std::printf("  before the window %.0f MiB\n", before);
  QSignalSpy finished(window.get(), &MainWindow::finished);
  window->close_without_asking();
  wait_until([&] { return finished.count() == 1; });
  return 0;
}

}  // namespace
}  // namespace stacklab::ui

int main(int argc, char** argv) {
  if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication app(argc, argv);
  stacklab::ui::look().set_base_pixel_size(13);
  if (argc > 1) return stacklab::ui::bench(argv[1]);
  const stacklab::TemporaryFolder folder;
  return stacklab::ui::bench(folder / "workspace");
}
