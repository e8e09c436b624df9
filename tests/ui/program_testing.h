// The program itself, started as a user or a script starts it.
#pragma once

#include <signal.h>

#include <QFile>
#include <QProcess>
#include <map>

#include "engine/service/job_service.h"
#include "tests/temporary_folder.h"
#include "tests/ui/ui_test.h"
#include "tests/ui/workspace_filler.h"

namespace stacklab::ui {

struct Outcome {
  int code = -1;
  bool crashed = false;
  QString out, err;
};

// Goes on for hours, in steps of milliseconds.
inline constexpr const char* long_run_json =
    R"({"name": "long", "model": {"vocab_size": 256, "d_model": 32, "n_layers": 1, "n_heads": 2, "n_kv_heads": 1,
    "head_dim": 16, "intermediate": 64, "max_seq_len": 64}, "optim": {"matrices": "adamw", "qk_clip": 0},
    "data": {"corpus": "tinyworld", "tokenizer": "bytes"},
    "train": {"tokens": 40960000, "batch_tokens": 256, "seq_len": 64}, "run": {"device": "reference", "eval_every": 0}})";

class Program : public testing::Test {
 protected:
  QProcessEnvironment environment() {
    QProcessEnvironment env = QProcessEnvironment::systemEnvironment();
    for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM", "STACKLAB_WORKSPACE", "QT_SCALE_FACTOR"})
      env.remove(QString::fromLatin1(name));
    env.insert(QStringLiteral("XDG_CONFIG_HOME"), path("config"));
    return env;
  }
  QString path(const char* name) { return QString::fromStdString((folder / name).string()); }
  void start(QProcess& process, const QStringList& arguments, const QProcessEnvironment& env) {
    process.setProcessEnvironment(env);
    process.setWorkingDirectory(QString::fromStdString(folder.path().string()));
    process.start(QStringLiteral(STACKLAB_BIN_DIR "/stacklab-workbench"), arguments);
    ASSERT_TRUE(process.waitForStarted(30000)) << process.errorString().toStdString();
  }
  Outcome end(QProcess& process) {
    if (!process.waitForFinished(120000)) {
      process.kill();
      process.waitForFinished();
      ADD_FAILURE() << "it did not end";
    }
    return {process.exitCode(), process.exitStatus() == QProcess::CrashExit,
            QString::fromLocal8Bit(process.readAllStandardOutput()),
            QString::fromLocal8Bit(process.readAllStandardError())};
  }
  Outcome run(const QStringList& arguments, const QProcessEnvironment& env) {
    QProcess process;
    start(process, arguments, env);
    return end(process);
  }
  Outcome run(const QStringList& arguments) { return run(arguments, environment()); }
  // Every regular file below a folder with its contents.
  std::map<std::string, std::string> contents(const std::filesystem::path& of) {
    std::map<std::string, std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(of))
      if (entry.is_regular_file()) all[entry.path().string()] = file_text(entry.path());
    return all;
  }
  bool has_open(qint64 process, const std::string& file_name) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/fd", error))
      if (std::filesystem::read_symlink(entry.path(), error).filename() == file_name) return true;
    return false;
  }
  QProcessEnvironment offscreen() {
    QProcessEnvironment env = environment();
    env.insert(QStringLiteral("QT_QPA_PLATFORM"), QStringLiteral("offscreen"));
    return env;
  }
  static std::vector<RunSummary> runs_in(const std::filesystem::path& workspace) {
    const auto reader = JobService::open_reader(workspace);
    const auto all = reader ? (*reader)->runs() : failed("not yet");
    return all ? *all : std::vector<RunSummary>();
  }
  // As the end of a session does.
  Outcome ask_to_end(QProcess& process) {
    ::kill(static_cast<pid_t>(process.processId()), SIGTERM);
    return end(process);
  }
  TemporaryFolder folder;
};

}  // namespace stacklab::ui
