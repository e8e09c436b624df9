// What happens to the program between its starts and around it: settings that come back or are broken, languages, a
// disk that is full.
#include <fmt/format.h>
#include <QDataStream>
#include <QElapsedTimer>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>

#include <fstream>

#include "tests/comma_locale.h"
#include "tests/in_child.h"
#include "tests/ui/program_testing.h"

namespace stacklab::ui {
namespace {

// Where the process has this file open.
std::string place_of(qint64 process, const std::string& file_name) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/fd", error))
    if (const auto target = std::filesystem::read_symlink(entry.path(), error); target.filename() == file_name)
      return target.parent_path().string();
  return {};
}

QJsonObject json_of(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? QJsonDocument::fromJson(file.readAll()).object() : QJsonObject();
}

// Of a window, as Qt keeps its geometry: the frame, then the window without it. Its place depends on how the frame is
// drawn.
QSize size_of(const QString& geometry) {
  QDataStream bytes(QByteArray::fromBase64(geometry.toLatin1()));
  quint32 magic = 0;
  quint16 major = 0, minor = 0;
  QRect frame, normal;
  bytes >> magic >> major >> minor >> frame >> normal;
  return normal.size();
}

TEST_F(Program, TheSecondStartOpensWhatWasOpenWhereItStood) {
  fill_workspace(folder / "mine", 50, 10);
  // A screen as people have them: on a smaller one the window would be made to fit.
  put_file(folder / "screen.json", R"({"screens": [{"name": "one", "x": 0, "y": 0, "width": 1920, "height": 1080,
                                       "logicalDpi": 96, "logicalBaseDpi": 96, "dpr": 1}]})");
  QProcessEnvironment env = offscreen();
  env.insert(QStringLiteral("QT_QPA_PLATFORM"), QStringLiteral("offscreen:configfile=") + path("screen.json"));
  QProcess first;
  start(first, {"--workspace", path("mine")}, env);
  ASSERT_TRUE(wait_until([&] { return has_open(first.processId(), "stacklab.db"); }, 60000));
  ASSERT_EQ(ask_to_end(first).code, 0);
  const QJsonObject settings = json_of(path("config/stacklab/workbench.json")),
                    layout = json_of(path("config/stacklab/layout.json"));
  EXPECT_EQ(settings["windows"].toArray(), QJsonArray({path("mine")}));
  EXPECT_FALSE(layout["geometry"].toString().isEmpty());
  QProcess second;
  start(second, {}, env);
  ASSERT_TRUE(wait_until([&] { return has_open(second.processId(), "stacklab.db"); }, 60000));
  EXPECT_EQ(place_of(second.processId(), "stacklab.db"), (folder / "mine").string());
  ASSERT_EQ(ask_to_end(second).code, 0);
  const QSize before = size_of(layout["geometry"].toString()),
              after = size_of(json_of(path("config/stacklab/layout.json"))["geometry"].toString());
  EXPECT_GT(before.width(), 1000);
  EXPECT_EQ(after, before);
  EXPECT_FALSE(QFile::exists(path("workspace"))) << "the usual workspace was not asked for";
}

TEST_F(Program, BrokenSettingsAreSetAsideAndTheWindowOpens) {
  fill_workspace(folder / "w", 50, 10);
  const QStringList names{"workbench.json", "layout.json", "monitor.json"};
  const std::vector<std::string> broken = {"{\"version\":", "[1, 2", std::string("\0\xff\x13 not JSON", 12)};
  for (int i = 0; i < names.size(); ++i)
    put_file(folder / "config/stacklab" / names[i].toStdString(), broken[static_cast<std::size_t>(i)]);
  QProcess process;
  start(process, {"--workspace", path("w")}, offscreen());
  ASSERT_TRUE(wait_until([&] { return has_open(process.processId(), "stacklab.db"); }, 60000));
  const Outcome outcome = ask_to_end(process);
  EXPECT_EQ(outcome.code, 0) << outcome.err.toStdString();
  for (int i = 0; i < names.size(); ++i)
    EXPECT_EQ(file_text(folder / "config/stacklab" / (names[i].toStdString() + ".broken")),
              broken[static_cast<std::size_t>(i)])
        << "nothing of it is lost";
  EXPECT_FALSE(json_of(path("config/stacklab/workbench.json")).isEmpty()) << "and new ones are written";
}

// A short run in the window: what it leaves is the same in every language.
TEST_F(Program, FilesAreTheSameInEveryLanguage) {
  put_file(folder / "run.json",
           R"({"name": "short", "model": {"vocab_size": 256, "d_model": 32, "n_layers": 1, "n_heads": 2,
    "n_kv_heads": 1, "head_dim": 16, "intermediate": 64, "max_seq_len": 64}, "optim": {"matrices": "adamw",
    "qk_clip": 0, "adam_lr": 0.0003}, "data": {"corpus": "tinyworld", "tokenizer": "bytes"},
    "train": {"tokens": 2560, "batch_tokens": 256, "seq_len": 64},
    "run": {"device": "reference", "eval_every": 0, "threads": 1}})");
  std::map<std::string, std::string> expected;
  const CommaLocale german;  // for the C library; Qt brings its own
  for (const char* locale : {"C", "de_DE.UTF-8", "fr_FR.UTF-8", "ar_EG.UTF-8"}) {
    QProcessEnvironment env = offscreen();
    for (const char* name : {"LC_ALL", "LANG", "LC_NUMERIC"})
      env.insert(QString::fromLatin1(name), QString::fromLatin1(locale));
    const std::filesystem::path workspace = folder / locale;
    QProcess process;
    start(process, {"--workspace", path(locale), "--first-run", path("run.json")}, env);
    ASSERT_TRUE(wait_until(
        [&] { return !runs_in(workspace).empty() && runs_in(workspace)[0].state == RunState::finished; }, 120000))
        << locale << process.readAllStandardError().toStdString();
    const Outcome outcome = ask_to_end(process);
    EXPECT_EQ(outcome.code, 0) << locale << outcome.err.toStdString();
    const RunSummary left_run = runs_in(workspace)[0];
    std::map<std::string, std::string> left;
    left["config"] = left_run.config_json;
    left["id"] = left_run.id;
    const auto reader = JobService::open_reader(workspace);
    ASSERT_TRUE(reader);
    const auto series = (*reader)->series(left_run.id, "loss", 0, 1000);
    ASSERT_TRUE(series);
    EXPECT_EQ(series->size(), 10u);
    for (const SeriesPoint& point : *series) left["loss"] += fmt::format("{} {}\n", point.step, point.value);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(workspace / "runs"))
      if (entry.path().filename() == "config.json") left["checkpoint"] = file_text(entry.path());
    if (expected.empty()) expected = left;
    EXPECT_EQ(left, expected) << locale;
    // And it is drawn.
    const Outcome drawn =
        run({"--workspace", path(locale), "--screenshot", path("p"), "--size", "1200x800", "--scale", "1.25"}, env);
    EXPECT_EQ(drawn.code, 0) << drawn.err.toStdString();
    keep_picture(QImage(path("p/runs.png")), QStringLiteral("program-runs-%1").arg(QLatin1String(locale)));
  }
}

TEST_F(Program, AFullDiskEndsNeitherTheWindowNorTheStore) {
  std::filesystem::create_directories(folder / "w");
  put_file(folder / "run.json", long_run_json);
  // For this test alone; what it starts sees it too.
  if (!mount_small(folder / "w", "64m")) GTEST_SKIP() << "nobody may mount here";
  struct Unmounts {
    std::filesystem::path place;
    ~Unmounts() { umount2(place.c_str(), MNT_DETACH); }
  } const unmounts{folder / "w"};
  const std::filesystem::path inside = folder / "w";
  QProcess process;
  start(process, {"--workspace", path("w"), "--first-run", path("run.json")}, offscreen());
  ASSERT_TRUE(wait_until([&] { return !runs_in(inside).empty() && runs_in(inside)[0].step >= 3; }, 120000))
      << process.readAllStandardError().toStdString();
  const std::int64_t step = runs_in(inside)[0].step;
  {
    std::ofstream filler(inside / "filler", std::ios::binary);
    const std::string block(1 << 16, 'x');
    while (filler.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  // It trains on, or says what it lacks; it never ends for it.
  QElapsedTimer full;
  full.start();
  ASSERT_TRUE(wait_until([&] {
    const auto runs = runs_in(inside);
    return process.state() != QProcess::Running || (!runs.empty() && !is_active(runs[0].state)) ||
           full.elapsed() > 3000;
  }));
  ASSERT_EQ(process.state(), QProcess::Running) << process.readAllStandardError().toStdString();
  std::filesystem::remove(inside / "filler");
  ASSERT_TRUE(wait_until([&] { return !runs_in(inside).empty(); }));
  EXPECT_GE(runs_in(inside)[0].step, step);
  const Outcome outcome = ask_to_end(process);
  EXPECT_EQ(outcome.code, 0) << outcome.err.toStdString();
  EXPECT_FALSE(outcome.crashed);
}

}  // namespace
}  // namespace stacklab::ui
