// What the program says and draws, and that it ends well.
#include "tests/ui/program_testing.h"
#include "ui/theme/theme.h"

namespace stacklab::ui {
namespace {

TEST_F(Program, SaysItsVersionAndHelp) {
  const Outcome version = run({QStringLiteral("--version")});
  EXPECT_EQ(version.code, 0);
  EXPECT_TRUE(version.out.startsWith(QLatin1String("stacklab-workbench "))) << version.out.toStdString();
  const Outcome help = run({QStringLiteral("--help")});
  EXPECT_EQ(help.code, 0);
  for (const char* option :
       {"--workspace", "--first-run", "--fallback-corpus", "--screenshot", "--size", "--scale", "--theme", "example"})
    EXPECT_TRUE(help.out.contains(QLatin1String(option))) << option;
}

TEST_F(Program, RefusesWhatItDoesNotUnderstand) {
  for (const QStringList& arguments : {QStringList{"--bogus"},
                                       {"stray"},
                                       {"--size", "big"},
                                       {"--size", "10x10"},
                                       {"--scale", "0"},
                                       {"--theme", "pink"},
                                       {"--screenshot", ""}}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments.join(QLatin1Char(' ')).toStdString();
    EXPECT_FALSE(outcome.crashed);
    EXPECT_FALSE(outcome.err.isEmpty());
  }
  const Outcome missing = run({"--first-run", path("nowhere.json")});
  EXPECT_NE(missing.code, 0);
  EXPECT_TRUE(missing.err.contains(QLatin1String("nowhere.json"))) << missing.err.toStdString();
  put_file(folder / "odd.json", R"({"model": {"d_modle": 64}})");
  const Outcome odd = run({"--first-run", path("odd.json")});
  EXPECT_NE(odd.code, 0);
  EXPECT_TRUE(odd.err.contains(QLatin1String("d_model"))) << odd.err.toStdString();
}

TEST_F(Program, WithoutADisplayItSaysSo) {
  const Outcome outcome = run({"--workspace", path("w")});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_FALSE(outcome.crashed);
  EXPECT_TRUE(outcome.err.contains(QLatin1String("display"))) << outcome.err.toStdString();
}

TEST_F(Program, DrawsEveryPage) {
  fill_workspace(folder / "w", 1000, 400);
  for (const char* theme_word : {"light", "dark"}) {
    const Outcome outcome =
        run({"--workspace", path("w"), "--screenshot", path("pictures"), "--size", "1200x800", "--theme", theme_word});
    ASSERT_EQ(outcome.code, 0) << outcome.err.toStdString();
    const Theme colours = Theme::builtin(QLatin1String(theme_word) == QLatin1String("dark"));
    for (const char* page : {"monitor", "settings"}) {
      const QImage image(path("pictures") + QLatin1Char('/') + QLatin1String(page) + QStringLiteral(".png"));
      ASSERT_FALSE(image.isNull()) << page;
      EXPECT_EQ(image.size(), QSize(1200, 800));
      EXPECT_GT(count_pixels(image, colours[Token::window], {}, 2), 50'000);
    }
    EXPECT_GT(count_pixels(QImage(path("pictures/monitor.png")), colours.run_color(0), {}, 40), 500);
  }
}

TEST_F(Program, PicturesScale) {
  fill_workspace(folder / "w", 500, 100);
  for (const char* scale : {"1.25", "2"}) {
    const Outcome outcome = run({"--workspace", path("w"), "--screenshot", path("p"), "--size", "1600x1000", "--scale",
                                 scale, "--theme", "light"});
    ASSERT_EQ(outcome.code, 0) << outcome.err.toStdString();
    const QImage image(path("p/monitor.png"));
    const double factor = QByteArray(scale).toDouble();
    EXPECT_EQ(image.size(), QSize(qRound(1600 * factor), qRound(1000 * factor)));
    // Lines get thicker with the screen, not thinner.
    EXPECT_GT(count_pixels(image, Theme::builtin(false).run_color(0), {}, 40), 1000 * factor);
    keep_picture(image, QStringLiteral("program-scale-%1").arg(QLatin1String(scale)));
  }
}

TEST_F(Program, PicturesLeaveTheWorkspaceAsItIs) {
  fill_workspace(folder / "w", 200, 100);
  const auto before = contents(folder / "w");
  ASSERT_EQ(run({"--workspace", path("w"), "--screenshot", path("p"), "--size", "800x600"}).code, 0);
  for (const auto& [file, text] : before) EXPECT_EQ(file_text(file), text) << file;
  EXPECT_FALSE(QFile::exists(path("config/stacklab/workbench.json")));
}

TEST_F(Program, PicturesOfAnEmptyWorkspaceShowWhatToDoNext) {
  std::filesystem::create_directories(folder / "w");
  const Outcome outcome =
      run({"--workspace", path("w"), "--screenshot", path("p"), "--size", "1200x800", "--theme", "light"});
  ASSERT_EQ(outcome.code, 0) << outcome.err.toStdString();
  EXPECT_TRUE(std::filesystem::is_empty(folder / "w")) << "looking makes nothing";
  // The one button of the page stands in the middle, in the accent.
  for (const char* page : {"runs", "monitor"}) {
    const QImage image(path("p") + QLatin1Char('/') + QLatin1String(page) + QStringLiteral(".png"));
    ASSERT_EQ(image.size(), QSize(1200, 800));
    EXPECT_GT(count_pixels(image, Theme::builtin(false)[Token::accent], QRect(300, 250, 600, 400), 2), 1000) << page;
    keep_picture(image, QStringLiteral("program-empty-%1").arg(QLatin1String(page)));
  }
}

TEST_F(Program, PicturesOfNothingAreAnError) {
  const Outcome missing = run({"--workspace", path("nothing"), "--screenshot", path("p")});
  EXPECT_EQ(missing.code, 1);
  EXPECT_FALSE(missing.crashed);
  EXPECT_TRUE(missing.err.contains(QLatin1String("nothing"))) << missing.err.toStdString();
  EXPECT_FALSE(QFile::exists(path("nothing"))) << "looking makes nothing";
  put_file(folder / "bad/stacklab.db", std::string(5000, 'x'));
  const Outcome bad = run({"--workspace", path("bad"), "--screenshot", path("p")});
  EXPECT_EQ(bad.code, 1);
  EXPECT_FALSE(bad.crashed);
  fill_workspace(folder / "w", 50, 10);
  put_file(folder / "afile", "x");
  const Outcome nowhere = run({"--workspace", path("w"), "--screenshot", path("afile/p")});
  EXPECT_EQ(nowhere.code, 1);
  EXPECT_TRUE(nowhere.err.contains(QLatin1String("afile"))) << nowhere.err.toStdString();
}

TEST_F(Program, AGermanLocaleChangesTheScreenAlone) {
  fill_workspace(folder / "w", 300, 100);
  QProcessEnvironment env = environment();
  for (const char* name : {"LC_ALL", "LANG", "LC_NUMERIC"})
    env.insert(QString::fromLatin1(name), QStringLiteral("de_DE.UTF-8"));
  const Outcome outcome =
      run({"--workspace", path("w"), "--screenshot", path("p"), "--size", "1200x800", "--scale", "1.5"}, env);
  ASSERT_EQ(outcome.code, 0) << outcome.err.toStdString();
  EXPECT_EQ(QImage(path("p/monitor.png")).size(), QSize(1800, 1200));
}

TEST_F(Program, AWindowThatIsKilledLeavesAWholeStore) {
  QProcessEnvironment env = environment();
  env.insert(QStringLiteral("QT_QPA_PLATFORM"), QStringLiteral("offscreen"));
  put_file(folder / "run.json", long_run_json);
  const auto runs = [&]() -> std::vector<RunSummary> {
    const auto reader = JobService::open_reader(folder / "w");
    const auto all = reader ? (*reader)->runs() : failed("not yet");
    return all ? *all : std::vector<RunSummary>();
  };
  QProcess process;
  start(process, {"--workspace", path("w"), "--first-run", path("run.json")}, env);
  ASSERT_TRUE(wait_until([&] { return !runs().empty() && runs()[0].step >= 3; }, 120000));
  process.kill();
  process.waitForFinished();
  ASSERT_EQ(runs().size(), 1u);
  EXPECT_EQ(runs()[0].state, RunState::lost) << "never running for a process that is gone";
  const std::int64_t steps = runs()[0].step;
  EXPECT_GE(steps, 3);
  // The next window opens on it, and takes nothing up by itself.
  QProcess again;
  start(again, {"--workspace", path("w")}, env);
  ASSERT_TRUE(wait_until([&] { return has_open(again.processId(), "stacklab.db"); }, 60000));
  ::kill(static_cast<pid_t>(again.processId()), SIGTERM);
  const Outcome outcome = end(again);
  EXPECT_EQ(outcome.code, 0) << outcome.err.toStdString();
  EXPECT_FALSE(outcome.crashed);
  ASSERT_EQ(runs().size(), 1u);
  EXPECT_EQ(runs()[0].state, RunState::lost);
  EXPECT_EQ(runs()[0].step, steps);
}

TEST_F(Program, ASignalStopsTheRunCleanly) {
  QProcessEnvironment env = environment();
  env.insert(QStringLiteral("QT_QPA_PLATFORM"), QStringLiteral("offscreen"));
  put_file(folder / "run.json", long_run_json);
  for (const int signal_number : {SIGTERM, SIGINT}) {
    QProcess process;
    start(process, {"--workspace", path("w"), "--first-run", path("run.json")}, env);
    if (signal_number == SIGTERM) {
      ASSERT_TRUE(wait_until(
          [&] {
            const auto reader = JobService::open_reader(folder / "w");
            const auto runs = reader ? (*reader)->runs() : failed("not yet");
            return runs && !runs->empty() && runs->front().step >= 3;
          },
          120000))
          << process.readAllStandardError().toStdString();
    } else {
      // The second start finds the run and starts nothing.
      ASSERT_TRUE(wait_until([&] { return has_open(process.processId(), "stacklab.db"); }, 60000));
    }
    ::kill(static_cast<pid_t>(process.processId()), signal_number);
    ::kill(static_cast<pid_t>(process.processId()), signal_number);  // twice is harmless
    const Outcome outcome = end(process);
    EXPECT_EQ(outcome.code, 0) << outcome.err.toStdString();
    EXPECT_FALSE(outcome.crashed);
    auto reader = JobService::open_reader(folder / "w");
    ASSERT_TRUE(reader) << reader.error().message();
    const auto runs = (*reader)->runs();
    ASSERT_TRUE(runs);
    ASSERT_EQ(runs->size(), 1u);
    EXPECT_EQ(runs->front().state, RunState::paused) << runs->front().cause;
    EXPECT_GT(runs->front().step, 0);
  }
  EXPECT_TRUE(QFile::exists(path("config/stacklab/workbench.json")));
}

}  // namespace
}  // namespace stacklab::ui
