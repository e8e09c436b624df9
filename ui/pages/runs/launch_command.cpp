#include "ui/pages/runs/launch_command.h"

#include "engine/config/config_io.h"
#include "engine/config/fields.h"
#include "ui/pages/runs/launch_form.h"

namespace stacklab::ui {
namespace {

constexpr const char* end_of_file = "END_OF_CONFIG";  // no line of JSON is this

// One word for any POSIX shell.
QString word(const std::string& text) {
  static const std::string plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  QString shown = QString::fromStdString(text);
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return shown;
  return QLatin1Char('\'') + shown.replace(QLatin1Char('\''), QStringLiteral("'\\''")) + QLatin1Char('\'');
}

QString place(const std::string& workspace) {
  return workspace.empty() ? QString() : QStringLiteral(" --workspace ") + word(workspace);
}

}  // namespace

QString train_command(const RunConfig& config, const std::string& workspace, bool detached) {
  const QString file = word(config.name + ".json");
  QString json = QString::fromStdString(to_json(config));
  if (!json.endsWith(QLatin1Char('\n'))) json += QLatin1Char('\n');
  return QStringLiteral("cat > %1 <<'%2'\n").arg(file, QLatin1String(end_of_file)) + json + QLatin1String(end_of_file) +
         QStringLiteral("\nstacklab train ") + file + place(workspace) +
         (detached ? QStringLiteral(" --detach\n") : QStringLiteral("\n"));
}

QString fork_command(const RunId& parent, std::int64_t step, const RunConfig& of_parent, const RunConfig& config,
                     const std::string& workspace) {
  QString command = QStringLiteral("stacklab fork %1 --at %2").arg(word(parent)).arg(step) + place(workspace) +
                    QStringLiteral(" --name ") + word(config.name);
  for (const FieldInfo& field : field_infos()) {
    const QString key = QString::fromStdString(field.key), value = LaunchForm::value_text(config, key);
    if (key == QLatin1String("name") || key == QLatin1String("train.parent")) continue;
    if (value != LaunchForm::value_text(of_parent, key))
      command += QStringLiteral(" --set ") + word((key + QLatin1Char('=') + value).toStdString());
  }
  return command + QStringLiteral(" --start\n");
}

}  // namespace stacklab::ui
