#include "tests/ui/fake_service.h"
#include "tests/ui/ui_test.h"
#include "ui/shell/main_window.h"

namespace stacklab::ui {
namespace {

WindowOptions options_for(const FakeWorkspacePtr& workspace) {
  WindowOptions options;
  options.workspace_path = QStringLiteral("/tmp/demo");
  options.link = fake_link(workspace);
  return options;
}

std::unique_ptr<MainWindow> shown(const WindowOptions& options, QSize size = QSize(1600, 1000)) {
  auto window = std::make_unique<MainWindow>(options);
  window->resize(size);
  window->show();
  window->open();
  return window;
}

struct Scene {
  const char* name;
  std::function<void(FakeWorkspace&, WindowOptions&)> fill;
};

void running(FakeWorkspace& w, int number) {
  RunSummary run = sample_run(number, RunState::running, 215);
  w.put_run(run);
  add_sample_curves(w, run);
  JobSnapshot job;
  job.job = 1;
  job.run = run.id;
  job.name = run.name;
  job.progress = run.progress;
  w.set_jobs({job});
}

const std::vector<Scene>& scenes() {
  static const std::vector<Scene> all = {
      {"empty",
       [](FakeWorkspace&, WindowOptions& o) {
         o.first_run = sample_config();
         o.start_first_run = false;
       }},
      {"preparing",
       [](FakeWorkspace& w, WindowOptions&) {
         JobSnapshot job;
         job.job = 1;
         job.name = "first-run";
         job.progress = {"text", "King James Bible, from the distribution's packages: unpacking the text", 2'100'000,
                         4'400'000};
         w.set_jobs({job});
       }},
      {"running", [](FakeWorkspace& w, WindowOptions&) { running(w, 0); }},
      {"finished",
       [](FakeWorkspace& w, WindowOptions&) {
         RunSummary run = sample_run(0, RunState::finished, 400);
         w.put_run(run);
         add_sample_curves(w, run);
       }},
      {"many",
       [](FakeWorkspace& w, WindowOptions&) {
         for (int n = 0; n < 7; ++n) {
           RunSummary run = sample_run(n,
                                       n == 3   ? RunState::failed
                                       : n == 4 ? RunState::paused
                                       : n == 5 ? RunState::lost
                                                : RunState::finished,
                                       n == 3   ? 170
                                       : n == 4 ? 260
                                                : 400);
           if (n == 3)
             run.cause =
                 "the gradient was not finite in 5 steps in a row, the last of them step 170 (resume from an earlier "
                 "checkpoint with a smaller optim.adam_lr)";
           if (n == 4) run.cause = "stopped at step 260 by the user";
           w.put_run(run);
           add_sample_curves(w, run);
           if (n == 3) {
             std::vector<SeriesPoint> bad;
             for (int s = 171; s < 176; ++s) bad.push_back({s, std::nan("")});
             w.add_points(run.id, "loss", bad);
             w.add_event(run.id, {RunEvent::Kind::spike, 120, "Loss spike to 3.94"});
             w.add_event(run.id,
                         {RunEvent::Kind::non_finite, 171, "Step skipped: the gradient norm is nan, the loss nan"});
           }
         }
         running(w, 7);
       }},
      {"failed",
       [](FakeWorkspace& w, WindowOptions&) {
         RunSummary run = sample_run(0, RunState::failed, 170);
         run.cause =
             "the gradient was not finite in 5 steps in a row, the last of them step 170 (resume from an earlier "
             "checkpoint with a smaller optim.adam_lr)";
         w.put_run(run);
         add_sample_curves(w, run);
         std::vector<SeriesPoint> bad;
         for (int s = 171; s < 176; ++s) bad.push_back({s, std::nan("")});
         w.add_points(run.id, "loss", bad);
         w.add_points(run.id, "grad_norm", bad);
         w.add_event(run.id, {RunEvent::Kind::non_finite, 171, "Step skipped: the gradient norm is nan, the loss nan"});
       }},
  };
  return all;
}

TEST(Window, DrawsEveryScene) {
  for (const bool dark : {false, true}) {
    look().set_mode(dark ? ThemeMode::dark : ThemeMode::light);
    for (const Scene& scene : scenes()) {
      auto workspace = std::make_shared<FakeWorkspace>();
      WindowOptions options = options_for(workspace);
      options.for_pictures = true;
      scene.fill(*workspace, options);
      auto window = shown(options);
      window->monitor()->set_introduction(std::string(scene.name) == "running" ||
                                          std::string(scene.name) == "preparing");
      ASSERT_TRUE(wait_until([&] { return window->settled(); })) << scene.name;
      QTest::qWait(150);  // let layouts come to rest
      keep_picture(window->grab().toImage(), QString::fromLatin1(scene.name) + (dark ? "-dark" : "-light"));
    }
  }
}

}  // namespace
}  // namespace stacklab::ui
