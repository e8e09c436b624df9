#include "ui/pages/runs/presets.h"

#include <QCoreApplication>
#include <QDir>
#include <QFile>
#include <algorithm>

#include "engine/config/config_io.h"
#include "engine/service/model_facts.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = [] {
    std::vector<std::pair<std::int64_t, Preset>> found;
    const QDir dir(QStringLiteral(":/presets"));
    for (const QString& name : dir.entryList({QStringLiteral("*.json")})) {
      QFile file(dir.filePath(name));
      if (!file.open(QIODevice::ReadOnly)) continue;
      const auto config = parse_config(file.readAll().toStdString(), name.toStdString());
      if (!config || !check_model(*config)) continue;
      const std::int64_t parameters = count_parameters(config->model).total;
      const QString id = name.section(QLatin1Char('.'), 0, -2);
      found.emplace_back(parameters, Preset{id,
                                            QCoreApplication::translate("presets", "%1, %2 parameters")
                                                .arg(id, format_amount(static_cast<double>(parameters))),
                                            *config});
    }
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
      return std::tie(a.first, a.second.id) < std::tie(b.first, b.second.id);
    });
    std::vector<Preset> sorted;
    for (auto& [parameters, preset] : found) sorted.push_back(std::move(preset));
    return sorted;
  }();
  return all;
}

}  // namespace stacklab::ui
