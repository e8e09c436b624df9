// The window over a real store and the real service; only what a job does is replaced.
#include <QFile>
#include <QSignalSpy>
#include <algorithm>
#include <atomic>
#include <cmath>

#include "engine/config/config_io.h"
#include "engine/service/job_steps.h"
#include "engine/store/store.h"
#include "tests/temporary_folder.h"
#include "tests/ui/ui_test.h"
#include "tests/ui/workspace_filler.h"
#include "ui/shell/main_window.h"

namespace stacklab::ui {
namespace {

RunConfig small_config() {
  RunConfig config;
  config.name = "first-run";
  config.model = {.vocab_size = 256,
                  .d_model = 64,
                  .n_layers = 2,
                  .n_heads = 2,
                  .n_kv_heads = 1,
                  .head_dim = 32,
                  .intermediate = 176,
                  .max_seq_len = 256};
  config.optim.matrices = "adamw";
  config.optim.qk_clip = 0;
  config.data.corpus = "tinyworld";
  config.train.tokens = 4096 * 4000;
  return config;
}

// Steps as fast as they can be told, until stopped or done. Throttled only by the gate, which the test opens.
struct Steps {
  std::atomic<std::int64_t> allowed{0};
  std::atomic<std::int64_t> done{0};
  std::atomic<bool> saved{false};

  JobSteps steps() {
    JobSteps steps;
    steps.ensure_corpus = [](std::string_view name, const std::filesystem::path& workspace,
                             const CorpusProgress& progress, std::stop_token) -> Result<Corpus> {
      progress("a small text", 10, 10);
      DocumentSet documents;
      documents.add("In the beginning was a small text.");
      CorpusInfo info;
      info.name = name;
      const std::filesystem::path dir = workspace / "data" / name;
      if (!std::filesystem::exists(dir))
        if (const Status made = write_corpus(dir, info, documents); !made) return tl::unexpected(made.error());
      return Corpus::open(dir);
    };
    steps.train = [this](const TrainRequest& request, const Dataset&, RunSink& sink,
                         std::stop_token stop) -> Result<TrainResult> {
      const std::int64_t total = request.config.steps();
      sink.fact("unigram_entropy", 2.9);
      sink.fact("parameters", 100000);
      std::int64_t step = 0;
      while (step < total && !stop.stop_requested()) {
        if (step >= allowed) {
          sink.beat(10);
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
          continue;
        }
        report_step(sink, ++step, total);
        done = step;
      }
      saved = true;  // the checkpoint that a stop promises
      TrainResult result;
      result.steps = step;
      result.complete = step == total;
      result.val_loss = std::nan("");
      return result;
    };
    return steps;
  }
};

WindowOptions options_for(const std::filesystem::path& workspace, Steps& steps) {
  WindowOptions options;
  options.workspace_path = QString::fromStdString(workspace.string());
  options.link.active_period_ms = options.link.idle_period_ms = 50;
  options.link.open = [workspace, &steps]() -> Result<OpenedWorkspace> {
    auto service = open_job_service(workspace, steps.steps());
    if (!service) return tl::unexpected(service.error());
    return OpenedWorkspace{std::shared_ptr<JobService>(std::move(*service)), nullptr};
  };
  return options;
}

std::unique_ptr<MainWindow> shown(const WindowOptions& options) {
  auto window = std::make_unique<MainWindow>(options);
  window->resize(1500, 950);
  window->show();
  window->show_page(QStringLiteral("monitor"));
  window->open();
  return window;
}

QImage loss_picture(const MainWindow& window) {
  return window.monitor()->charts()->panel(QStringLiteral("loss"))->chart()->viewport()->grab().toImage();
}

std::function<Result<OpenedWorkspace>()> opens_for_reading(std::filesystem::path path) {
  return [path = std::move(path)]() -> Result<OpenedWorkspace> {
    auto reader = JobService::open_reader(path);
    if (!reader) return tl::unexpected(reader.error());
    return OpenedWorkspace{nullptr, std::move(*reader)};
  };
}

TEST(StoreWindow, DrawsWhatTheStoreHolds) {
  look().set_mode(ThemeMode::light);
  TemporaryFolder folder;
  fill_workspace(folder / "w", 3000, 1234);
  WindowOptions options;
  options.workspace_path = QStringLiteral("w");
  options.link.open = opens_for_reading(folder / "w");
  auto window = shown(options);
  ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  CurveChart* chart = window->monitor()->charts()->panel(QStringLiteral("loss"))->chart();
  EXPECT_EQ(window->monitor()->charts()->raw_points(), 3000u * 4 + 60);
  EXPECT_GT(count_pixels(loss_picture(*window), theme().run_color(0), chart->plot_rect().toRect(), 40), 300);
  // The spike of step 1,234 stands out, faint behind the smoothed line.
  const AxisRange y = chart->y_range(), x = chart->x_range();
  EXPECT_GE(y.high, 9);
  const QRectF plot = chart->plot_rect();
  const QPoint top(qRound(plot.left() + (1234 - x.low) / x.span() * plot.width()),
                   qRound(plot.bottom() - (8.8 - y.low) / y.span() * plot.height()));
  const QColor faint = mix(theme().run_color(0), theme()[Token::surface], 0.28);
  EXPECT_GT(count_pixels(loss_picture(*window), faint, QRect(top - QPoint(3, 3), top + QPoint(3, 3)), 60), 0);
  // Without a service it shows, and says why it cannot steer.
  EXPECT_FALSE(window->monitor()->inspector()->stop_button()->isEnabled());
  EXPECT_EQ(window->monitor()->runs()->run_at(0).summary.name, "first-run");
}

TEST(StoreWindow, ALongRunIsHeldSummedUpAndASpikeIsSeenAtEveryZoom) {
  look().set_mode(ThemeMode::light);
  constexpr std::int64_t steps = 20'000, spike = 12'345, most = 6000;
  TemporaryFolder folder;
  fill_workspace(folder / "w", steps, spike);
  WindowOptions options;
  options.workspace_path = QStringLiteral("w");
  options.link.most_points = most;
  options.link.open = opens_for_reading(folder / "w");
  auto window = shown(options);
  ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  MonitorCharts* charts = window->monitor()->charts();
  ChartPanel* panel = charts->panel(QStringLiteral("loss"));
  CurveChart* chart = panel->chart();
  const auto train = [&] { return chart->curves().front().series; };
  charts->view()->set_smoothing(0);
  // The values that stand behind what is drawn are counted in full, and few are held.
  EXPECT_EQ(charts->raw_points(), steps * 4u + steps / 50);
  const auto seen = [&] {
    const auto series = train();
    const auto at = std::lower_bound(series->xs().begin(), series->xs().end(), static_cast<double>(spike));
    return at != series->xs().end() && *at == spike &&
           series->ys()[static_cast<std::size_t>(at - series->xs().begin())] == 9;
  };
  const auto expect_spike = [&](double span) {
    ASSERT_TRUE(wait_until([&] { return window->settled(); }));
    EXPECT_LE(train()->size(), 4u * (2048 + 2 * 512) + 4) << span;
    EXPECT_TRUE(seen()) << span;
    const AxisRange x = chart->x_range(), y = chart->y_range();
    const QRectF plot = chart->plot_rect();
    const QPoint top(qRound(plot.left() + (spike - x.low) / x.span() * plot.width()),
                     qRound(plot.bottom() - (8.8 - y.low) / y.span() * plot.height()));
    EXPECT_GT(
        count_pixels(loss_picture(*window), theme().run_color(0), QRect(top - QPoint(3, 3), top + QPoint(3, 3)), 60), 0)
        << span;
  };
  EXPECT_LT(train()->size(), 4u * 2048 + 4);
  expect_spike(steps);
  for (double span = steps; span > 10; span /= 3.7) {
    charts->view()->push({AxisRange{spike - 0.4 * span, spike + 0.6 * span}, {}});
    expect_spike(span);
  }
  // So close up every step is there.
  const AxisRange x = chart->data_window();
  const auto xs = train()->xs();
  EXPECT_EQ(std::upper_bound(xs.begin(), xs.end(), x.high) - std::lower_bound(xs.begin(), xs.end(), x.low),
            static_cast<std::ptrdiff_t>(std::floor(x.high) - std::ceil(x.low) + 1));
  charts->view()->reset();
  // By tokens and on a log axis, where the first steps have most of the room.
  charts->view()->set_x_kind(XKind::tokens);
  charts->view()->set_log_x(true);
  ASSERT_TRUE(wait_until([&] { return window->settled() && train()->size() > 0; }));
  ASSERT_TRUE(wait_until([&] { return train()->xs()[9] == 10; })) << "the first steps are all there";
  EXPECT_TRUE(seen());
  EXPECT_EQ(chart->facts().raw, steps + steps / 50u);
  charts->view()->set_x_kind(XKind::step);
  charts->view()->set_log_x(false);
  // A file has every value of what is on show, not what stands for them.
  charts->view()->push({AxisRange{1, 15'000}, {}});
  ASSERT_TRUE(wait_until([&] { return window->settled(); }));
  QSignalSpy saved(panel, &PanelFrame::saved);
  const QString path = QString::fromStdString((folder / "loss.csv").string());
  panel->save_values(path);
  ASSERT_TRUE(wait_until([&] { return saved.count() == 1; }));
  QFile file(path);
  ASSERT_TRUE(file.open(QIODevice::ReadOnly));
  EXPECT_EQ(file.readAll().count('\n'), 1 + 15'000 + 15'000 / 50);
}

TEST(StoreWindow, ARunThatGrowsLongIsSummedUpAsItGoes) {
  TemporaryFolder folder;
  Steps steps;
  steps.allowed = 900;
  WindowOptions options = options_for(folder / "w", steps);
  options.link.most_points = 1000;
  options.first_run = small_config();
  auto window = shown(options);
  MonitorPage* page = window->monitor();
  window->show_page(QStringLiteral("monitor"));
  const auto loss = [&]() -> std::shared_ptr<const Series> {
    const auto curves = page->charts()->panel(QStringLiteral("loss"))->chart()->curves();
    return curves.empty() ? std::make_shared<Series>() : curves.front().series;
  };
  ASSERT_TRUE(wait_until([&] { return loss()->size() == 900; }));
  EXPECT_FALSE(loss()->summed());
  for (const std::int64_t until : {1900, 2900, 4000}) {
    steps.allowed = until;
    ASSERT_TRUE(wait_until([&] { return !loss()->empty() && loss()->xs().back() == static_cast<double>(until); }));
  }
  EXPECT_EQ(loss()->raw(0, loss()->size()), 4000u);
  const auto xs = loss()->xs();
  EXPECT_TRUE(std::is_sorted(xs.begin(), xs.end()));
  EXPECT_EQ(std::adjacent_find(xs.begin(), xs.end()), xs.end());
  QSignalSpy finished(window.get(), &MainWindow::finished);
  window->close_without_asking();
  ASSERT_TRUE(wait_until([&] { return finished.count() == 1; }));
}

TEST(StoreWindow, ARunIsStartedSeenStoppedAndResumed) {
  look().set_mode(ThemeMode::light);
  TemporaryFolder folder;
  Steps steps;
  steps.allowed = 300;
  WindowOptions options = options_for(folder / "w", steps);
  options.first_run = small_config();
  auto window = shown(options);
  MonitorPage* page = window->monitor();
  ASSERT_TRUE(wait_until([&] { return window->first_start() != nullptr; }));
  window->show_page(QStringLiteral("monitor"));
  ASSERT_TRUE(wait_until([&] { return page->charts()->raw_points() >= 4 * 300; }));
  EXPECT_TRUE(page->journey_strip()->isVisible());
  EXPECT_GT(count_pixels(loss_picture(*window), theme().run_color(0), {}, 40), 40);
  QTest::mouseClick(page->inspector()->stop_button(), Qt::LeftButton);
  ASSERT_TRUE(wait_until([&] { return page->can_resume(); }));
  EXPECT_TRUE(steps.saved);
  EXPECT_EQ(page->runs()->index(0).data(RunListModel::state_role).toString(), "paused");
  steps.saved = false;
  steps.allowed = 700;
  QTest::mouseClick(page->inspector()->resume_button(), Qt::LeftButton);
  ASSERT_TRUE(wait_until([&] { return page->can_stop() && steps.done == 700; }));
  EXPECT_EQ(page->runs()->rowCount(), 1) << "the same run goes on";
  QSignalSpy finished(window.get(), &MainWindow::finished);
  window->close_without_asking();
  ASSERT_TRUE(wait_until([&] { return finished.count() == 1; }));
  EXPECT_TRUE(steps.saved);

  auto reader = JobService::open_reader(folder / "w");
  ASSERT_TRUE(reader) << reader.error().message();
  const auto runs = (*reader)->runs();
  ASSERT_TRUE(runs);
  ASSERT_EQ(runs->size(), 1u);
  EXPECT_EQ(runs->front().state, RunState::paused);
}

TEST(StoreWindow, AFailureShowsItsCause) {
  TemporaryFolder folder;
  Steps steps;
  WindowOptions options = options_for(folder / "w", steps);
  options.link.open = [path = folder / "w"]() -> Result<OpenedWorkspace> {
    Steps never;
    JobSteps broken = never.steps();
    broken.train = [](const TrainRequest&, const Dataset&, RunSink& sink, std::stop_token) -> Result<TrainResult> {
      report_step(sink, 1, 100);
      return failed("the gradient was not finite in 5 steps in a row", "resume with a smaller optim.adam_lr");
    };
    auto service = open_job_service(path, broken);
    if (!service) return tl::unexpected(service.error());
    return OpenedWorkspace{std::shared_ptr<JobService>(std::move(*service)), nullptr};
  };
  options.first_run = small_config();
  auto window = shown(options);
  ASSERT_TRUE(wait_until([&] { return window->monitor()->failure_strip()->isVisible(); }));
  QString words;
  for (const QLabel* label : window->monitor()->failure_strip()->findChildren<QLabel*>()) words += label->text();
  EXPECT_TRUE(words.contains(QLatin1String("not finite"))) << words.toStdString();
  EXPECT_TRUE(words.contains(QLatin1String("smaller optim.adam_lr"))) << words.toStdString();
}

TEST(StoreWindow, AFileThatIsNoStoreIsExplained) {
  TemporaryFolder folder;
  put_file(folder / "w/stacklab.db", std::string(8192, 'x'));
  Steps steps;
  auto window = shown(options_for(folder / "w", steps));
  ASSERT_TRUE(wait_until([&] { return !window->open_error().isEmpty(); }));
  EXPECT_TRUE(window->open_error().contains(QString::fromStdString((folder / "w").string())))
      << window->open_error().toStdString();
}

}  // namespace
}  // namespace stacklab::ui
