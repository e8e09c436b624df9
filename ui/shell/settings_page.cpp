#include "ui/shell/settings_page.h"

#include <QButtonGroup>
#include <QGridLayout>
#include <QRadioButton>
#include <QScrollArea>

#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

QString text(const std::string& s) { return QString::fromStdString(s); }

QFrame* section(const QString& title, QVBoxLayout* into, QWidget* parent) {
  auto* heading = new TextLabel(TextRole::body, Token::text, true, parent);
  heading->set_full_text(title);
  into->addWidget(heading);
  auto* box = new QFrame(parent);
  box->setObjectName(QStringLiteral("panel"));
  into->addWidget(box);
  into->addSpacing(12);
  return box;
}

}  // namespace

SettingsPage::SettingsPage(QWidget* parent) : QWidget(parent) {
  setAccessibleName(tr("Settings"));
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  auto* header = new QWidget(this);
  header->setObjectName(QStringLiteral("pageHeader"));
  auto* header_row = new QHBoxLayout(header);
  header_row->setContentsMargins(16, 0, 12, 0);
  auto* title = new TextLabel(TextRole::title, Token::text, true, header);
  title->set_full_text(tr("Settings"));
  header_row->addWidget(title);
  header_row->addStretch();
  header->setFixedHeight(metrics().page_header());
  outer->addWidget(header);
  auto* scroll = new QScrollArea(this);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  auto* body = new QWidget(scroll);
  auto* centred = new QHBoxLayout(body);
  centred->setContentsMargins(24, 12, 24, 24);
  auto* column = new QVBoxLayout;
  centred->addLayout(column, 3);
  centred->addStretch(2);
  scroll->setWidget(body);
  outer->addWidget(scroll, 1);

  auto* look_box = new QGridLayout(section(tr("Appearance"), column, body));
  look_box->setContentsMargins(12, 10, 12, 10);
  look_box->setColumnStretch(1, 1);
  auto* theme_label = new TextLabel(TextRole::body, Token::text2, false, body);
  theme_label->set_full_text(tr("Theme"));
  look_box->addWidget(theme_label, 0, 0);
  auto* theme_row = new QHBoxLayout;
  themes_ = new QButtonGroup(this);
  for (const auto& [mode, name] : {std::pair{ThemeMode::follow, tr("Follow the desktop")},
                                   {ThemeMode::light, tr("Light")},
                                   {ThemeMode::dark, tr("Dark")}}) {
    auto* choice = new QRadioButton(name, body);
    choice->setAccessibleName(tr("Theme: %1").arg(name));
    themes_->addButton(choice, static_cast<int>(mode));
    theme_row->addWidget(choice);
  }
  theme_row->addStretch();
  look_box->addLayout(theme_row, 0, 1);
  auto* zoom_label = new TextLabel(TextRole::body, Token::text2, false, body);
  zoom_label->set_full_text(tr("Text size"));
  look_box->addWidget(zoom_label, 1, 0);
  auto* zoom_row = new QHBoxLayout;
  auto* smaller = make_button(tr("Smaller"), {}, body);
  auto* larger = make_button(tr("Larger"), {}, body);
  zoom_ = new TextLabel(TextRole::body, Token::text, false, body);
  zoom_->set_numbers(true);
  zoom_row->addWidget(smaller);
  zoom_row->addWidget(zoom_);
  zoom_row->addWidget(larger);
  zoom_row->addStretch();
  look_box->addLayout(zoom_row, 1, 1);
  auto* layout_label = new TextLabel(TextRole::body, Token::text2, false, body);
  layout_label->set_full_text(tr("Layout"));
  look_box->addWidget(layout_label, 2, 0);
  auto* reset = make_button(tr("Reset the window's layout"), {}, body);
  auto* reset_row = new QHBoxLayout;
  reset_row->addWidget(reset);
  reset_row->addStretch();
  look_box->addLayout(reset_row, 2, 1);

  facts_ = new QGridLayout(section(tr("This computer"), column, body));
  facts_->setContentsMargins(12, 10, 12, 10);
  facts_->setHorizontalSpacing(16);
  facts_->setVerticalSpacing(5);
  facts_->setColumnStretch(1, 1);
  column->addStretch();

  connect(themes_, &QButtonGroup::idClicked, this, [this](int id) { emit theme_chosen(static_cast<ThemeMode>(id)); });
  connect(smaller, &QPushButton::clicked, this, [this] { emit zoom_chosen(look().zoom() - 10); });
  connect(larger, &QPushButton::clicked, this, [this] { emit zoom_chosen(look().zoom() + 10); });
  connect(reset, &QPushButton::clicked, this, &SettingsPage::layout_reset);
  connect(&look(), &Look::changed, this, [this, header] {
    header->setFixedHeight(metrics().page_header());
    show_look();
  });
  show_look();
}

void SettingsPage::show_look() {
  themes_->button(static_cast<int>(look().mode()))->setChecked(true);
  zoom_->set_full_text(tr("%1 %").arg(look().zoom()));
}

void SettingsPage::show_system(const SystemInfo& info) {
  const auto set = [this](const QString& name, const QString& value) {
    if (value.isEmpty()) return;
    TextLabel*& label = values_[name];
    if (!label) {
      auto* key = new TextLabel(TextRole::secondary, Token::text3, false, this);
      key->set_full_text(name);
      label = new TextLabel(TextRole::secondary, Token::text, false, this);
      label->setWordWrap(true);
      label->setTextInteractionFlags(Qt::TextSelectableByMouse);
      const int line = facts_->rowCount();
      facts_->addWidget(key, line, 0, Qt::AlignTop);
      facts_->addWidget(label, line, 1);
    }
    label->set_full_text(value);
  };
  set(tr("Processor"), tr("%1, %2 threads, %3").arg(text(info.cpu)).arg(info.threads).arg(text(info.isa)));
  QStringList gpus;
  for (const std::string& gpu : info.gpus) gpus << text(gpu);
  set(tr("GPU"), gpus.isEmpty() ? text(info.gpu_note) : gpus.join(QStringLiteral(", ")));
  set(tr("Memory"), tr("%1 free of %2").arg(format_bytes(info.memory_free), format_bytes(info.memory_total)));
  set(tr("Disk"), tr("%1 free at the workspace").arg(format_bytes(info.disk_free)));
  set(tr("Stacklab"), text(info.version + (info.commit.empty() ? "" : ", " + info.commit)));
  QStringList libraries;
  for (const auto& [name, version] : info.libraries) libraries << text(name + " " + version);
  libraries << QStringLiteral("Qt %1").arg(QLatin1String(qVersion()));
  set(tr("Libraries"), libraries.join(QStringLiteral(", ")));
  set(tr("Fingerprint"), text(info.fingerprint));
}

}  // namespace stacklab::ui

#include <moc_settings_page.cpp>
