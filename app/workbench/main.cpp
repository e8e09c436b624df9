// stacklab-workbench: reads the command line, wires the window to the service, and runs the event loop.
#include <QApplication>
#include <QCommandLineParser>
#include <QDir>
#include <QFileInfo>
#include <QTemporaryDir>
#include <clocale>
#include <cstdio>
#include <cstdlib>

#include "engine/config/config_io.h"
#include "engine/service/job_service.h"
#include "engine/service/model_facts.h"
#include "engine/service/system_info.h"
#include "ui/shell/main_window.h"
#include "ui/shell/pictures.h"
#include "ui/shell/unix_signals.h"
#include "ui/shell/workbench.h"

namespace {

using namespace stacklab;

constexpr int exit_failed = 1, exit_usage = 2;

struct Arguments {
  QString workspace, first_run, fallback_corpus, pictures, theme;
  QString file;  // as if it had been dropped on the window
  QSize size{1600, 1000};
  double scale = 1;
  bool workspace_named = false;
  bool version = false, check_display = false, help = false;
};

void say(const QString& text) { std::fprintf(stderr, "stacklab-workbench: %s\n", text.toLocal8Bit().constData()); }

// Fills `to`; an error is a sentence.
QString parse(const QStringList& words, QCommandLineParser& parser, Arguments& to) {
  const QCommandLineOption workspace({"w", "workspace"},
                                     "Folder of the store, runs and data (default: $STACKLAB_WORKSPACE, else the "
                                     "windows that were open last, else ./workspace).",
                                     "DIR");
  const QCommandLineOption first("first-run", "Start this config by itself if the workspace holds no runs.", "CONFIG");
  const QCommandLineOption fallback("fallback-corpus", "What the first run reads if its corpus cannot be had.", "NAME");
  const QCommandLineOption pictures("screenshot", "Draw every page to DIR/<page>.png and exit; needs no display.",
                                    "DIR");
  const QCommandLineOption size("size", "Size of the window (default: 1600x1000).", "WxH");
  const QCommandLineOption scale("scale", "Pixels per unit of size (default: 1).", "S");
  const QCommandLineOption theme("theme", "light, dark or follow.", "THEME");
  const QCommandLineOption check("check-display", "Exit with 0 if a window could be opened.");
  const QCommandLineOption version({"v", "version"}, "Say the version and exit.");
  const QCommandLineOption help({"h", "help"}, "Say this and exit.");
  parser.setApplicationDescription(
      "The window of Stacklab: watch runs train, stop and resume them.\n\n"
      "examples: stacklab-workbench --workspace demo --first-run experiments/first-run.json\n"
      "          stacklab-workbench --workspace demo --screenshot pictures --theme dark");
  parser.addPositionalArgument("FILE", "A config, text, checkpoint or workspace, as if dropped on the window.",
                               "[FILE]");
  parser.addOptions({workspace, first, fallback, pictures, size, scale, theme, check, version, help});
  if (!parser.parse(words)) return parser.errorText();
  const QStringList given = parser.positionalArguments();
  if (given.size() > 1) return QStringLiteral("one file at a time: '%1' is too much").arg(given[1]);
  if (!given.isEmpty()) {
    to.file = QFileInfo(given.first()).absoluteFilePath();
    if (!QFileInfo::exists(to.file))
      return QStringLiteral("'%1' means nothing here, and there is no such file; --help says what does")
          .arg(given.first());
  }
  to.help = parser.isSet(help);
  to.version = parser.isSet(version);
  to.check_display = parser.isSet(check);
  to.workspace = parser.value(workspace);
  if (parser.isSet(workspace) && to.workspace.isEmpty()) return QStringLiteral("--workspace needs a folder");
  if (to.workspace.isEmpty()) to.workspace = qEnvironmentVariable("STACKLAB_WORKSPACE");
  to.workspace_named = !to.workspace.isEmpty();
  if (to.workspace.isEmpty()) to.workspace = QStringLiteral("workspace");
  // A workspace is opened at once.
  if (!to.file.isEmpty() && QFileInfo::exists(to.file + QStringLiteral("/stacklab.db"))) {
    to.workspace = std::exchange(to.file, {});
    to.workspace_named = true;
  }
  to.first_run = parser.value(first);
  to.fallback_corpus = parser.value(fallback);
  to.pictures = parser.value(pictures);
  if (parser.isSet(pictures) && to.pictures.isEmpty()) return QStringLiteral("--screenshot needs a folder");
  if (parser.isSet(size)) {
    const QStringList sides = parser.value(size).split(QLatin1Char('x'));
    if (sides.size() == 2) to.size = QSize(sides[0].toInt(), sides[1].toInt());
    if (sides.size() != 2 || to.size.width() < 400 || to.size.height() < 300 || to.size.width() > 8000 ||
        to.size.height() > 8000)
      return QStringLiteral("--size %1: give width and height from 400x300 to 8000x8000, as in 1600x1000")
          .arg(parser.value(size));
  }
  if (parser.isSet(scale)) {
    to.scale = parser.value(scale).toDouble();
    if (!(to.scale >= 0.5 && to.scale <= 4))
      return QStringLiteral("--scale %1: give a number from 0.5 to 4").arg(parser.value(scale));
  }
  to.theme = parser.value(theme);
  if (parser.isSet(theme) && !QStringList{"light", "dark", "follow"}.contains(to.theme))
    return QStringLiteral("--theme %1: give light, dark or follow").arg(to.theme);
  return {};
}

Result<RunConfig> checked_config(const std::string& file) {
  auto config = load_config(file);
  if (!config) return config;
  if (const Status valid = check_launch(*config); !valid) return tl::unexpected(valid.error());
  return config;
}

Result<ui::OpenedWorkspace> open_to_steer(const std::filesystem::path& workspace) {
  static ui::SharedServices services;
  auto service = services.get(workspace);
  if (!service) return tl::unexpected(service.error());
  return ui::OpenedWorkspace{std::move(*service), nullptr};
}

// A folder in which nothing has been done yet is shown as such, and left as it is.
Result<ui::OpenedWorkspace> open_to_look(const std::filesystem::path& workspace) {
  static const QTemporaryDir elsewhere;
  std::error_code error;
  std::filesystem::path place = workspace;
  if (std::filesystem::is_directory(workspace, error) && !std::filesystem::exists(workspace / "stacklab.db", error) &&
      elsewhere.isValid()) {
    place = QFile::encodeName(elsewhere.path()).toStdString();
    if (auto made = JobService::open(place); !made) return tl::unexpected(made.error());
  }
  auto reader = JobService::open_reader(place);
  if (!reader) return tl::unexpected(reader.error());
  return ui::OpenedWorkspace{nullptr, std::move(*reader)};
}

ui::WindowOptions window_options(const Arguments& arguments, const QString& path, std::optional<RunConfig> first_run) {
  const std::filesystem::path workspace = QFile::encodeName(path).toStdString();
  ui::WindowOptions options;
  options.workspace_path = path;
  options.for_pictures = !arguments.pictures.isEmpty();
  options.link.open = [workspace, look_only = options.for_pictures] {
    return look_only ? open_to_look(workspace) : open_to_steer(workspace);
  };
  options.link.system_info = [workspace] { return system_info(workspace); };
  options.first_run = std::move(first_run);
  // Only a workspace without runs gets it; where its row was made and nothing more, it goes on.
  options.first_run_options.resume = true;
  options.first_run_options.fallback_corpus = arguments.fallback_corpus.toStdString();
  options.load_config = checked_config;
  return options;
}

// Words of Qt's plugin without a display that help nobody.
void quiet_handler(QtMsgType type, const QMessageLogContext& context, const QString& message) {
  if (message.startsWith(QLatin1String("This plugin does not support")) ||
      message.startsWith(QLatin1String("QStandardPaths: XDG_RUNTIME_DIR")))
    return;
  std::fprintf(stderr, "%s\n", qFormatLogMessage(type, context, message).toLocal8Bit().constData());
}

int take_pictures(const Arguments& arguments, ui::MainWindow& window) {
  ui::look().set_base_pixel_size(13);
  window.resize(arguments.size);
  ui::PictureTaker taker(&window, arguments.pictures);
  QString error;
  bool ended = false;
  QObject::connect(&taker, &ui::PictureTaker::finished, [&](const QString& what) {
    error = what;
    ended = true;
    window.close_without_asking();
  });
  QObject::connect(&window, &ui::MainWindow::finished, qApp, &QCoreApplication::quit, Qt::QueuedConnection);
  QMetaObject::invokeMethod(&taker, &ui::PictureTaker::start, Qt::QueuedConnection);
  QApplication::exec();
  if (!error.isEmpty() || !ended) {
    say(error.isEmpty() ? QStringLiteral("interrupted") : error);
    return exit_failed;
  }
  for (const QString& path : taker.written()) std::printf("%s\n", path.toLocal8Bit().constData());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  QStringList words;
  for (int i = 0; i < argc; ++i) words << QString::fromLocal8Bit(argv[i]);
  QCommandLineParser parser;
  Arguments arguments;
  if (const QString error = parse(words, parser, arguments); !error.isEmpty()) {
    say(error);
    return exit_usage;
  }
  if (arguments.help) {
    // The parser takes the program's name from an application.
    int count = 1;
    const QCoreApplication plain(count, argv);
    std::printf("%s", parser.helpText().toLocal8Bit().constData());
    return 0;
  }
  if (arguments.version) {
    const SystemInfo info = system_info(".");
    std::printf("stacklab-workbench %s%s%s\n", info.version.c_str(), info.commit.empty() ? "" : ", ",
                info.commit.c_str());
    return 0;
  }
  std::optional<RunConfig> first_run;
  if (!arguments.first_run.isEmpty()) {
    auto config = checked_config(QFile::encodeName(arguments.first_run).toStdString());
    if (!config) {
      say(QString::fromStdString(config.error().message()));
      return config.error().kind == Error::Kind::usage ? exit_usage : exit_failed;
    }
    first_run = std::move(*config);
  }

  const bool pictures = !arguments.pictures.isEmpty();
  const bool has_display = !qEnvironmentVariableIsEmpty("DISPLAY") || !qEnvironmentVariableIsEmpty("WAYLAND_DISPLAY");
  if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) {
    if (pictures) {
      qputenv("QT_QPA_PLATFORM", "offscreen");
    } else if (!has_display) {
      say(
          QStringLiteral("there is no display to open a window on (train in the terminal with `stacklab train`, or "
                         "draw pictures with --screenshot DIR)"));
      return exit_failed;
    }
  }
  if (pictures && arguments.scale != 1) qputenv("QT_SCALE_FACTOR", QByteArray::number(arguments.scale));
  if (pictures) qInstallMessageHandler(quiet_handler);
  QApplication app(argc, argv);
  // QApplication takes the user's locale over; numbers in files and configs keep their '.'.
  std::setlocale(LC_NUMERIC, "C");
  QApplication::setApplicationName(QStringLiteral("stacklab-workbench"));
  QApplication::setApplicationDisplayName(QStringLiteral("Stacklab"));
  QApplication::setDesktopFileName(QStringLiteral("org.stacklab.Workbench"));
  QApplication::setQuitOnLastWindowClosed(false);
  if (arguments.check_display) return 0;

  if (pictures) {
    ui::MainWindow window(window_options(arguments, arguments.workspace, std::move(first_run)));
    if (!arguments.theme.isEmpty()) window.override_theme(ui::theme_mode_from_string(arguments.theme));
    return take_pictures(arguments, window);
  }

  // The first run belongs to the workspace that was named, however often that is opened; another one stays empty.
  const auto make = [&](const QString& path) {
    return window_options(arguments, path, path == arguments.workspace ? first_run : std::nullopt);
  };
  const auto keeper = std::make_shared<ui::SettingsKeeper>(ui::Settings::default_file());
  ui::Workbench workbench(make, keeper);
  ui::UnixSignals signals_of_the_system;
  QObject::connect(&signals_of_the_system, &ui::UnixSignals::quit_requested, &workbench,
                   &ui::Workbench::close_all_without_asking);
  // The end of the session does what a signal does.
  QObject::connect(
      &app, &QGuiApplication::commitDataRequest, &workbench, [&workbench] { workbench.close_all_without_asking(); },
      Qt::DirectConnection);
  QObject::connect(&workbench, &ui::Workbench::last_closed, &app, &QCoreApplication::quit, Qt::QueuedConnection);
  ui::MainWindow* window = nullptr;
  if (!arguments.workspace_named && first_run == std::nullopt) {
    const QStringList last = keeper->settings().windows;
    for (const QString& path : last)
      if (QFileInfo::exists(path + QStringLiteral("/stacklab.db"))) window = workbench.open_another(path);
  }
  if (!window) window = workbench.open(arguments.workspace);
  if (!arguments.theme.isEmpty()) window->override_theme(ui::theme_mode_from_string(arguments.theme));
  if (!arguments.file.isEmpty())
    QObject::connect(window, &ui::MainWindow::opened, window,
                     [window, file = arguments.file] { window->take_path(file); });
  return QApplication::exec();
}
