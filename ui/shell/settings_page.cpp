#include "ui/shell/settings_page.h"

#include <QButtonGroup>
#include <QCheckBox>
#include <QGridLayout>
#include <QLineEdit>
#include <QRadioButton>
#include <QScrollArea>

#include "ui/shell/notice_model.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

constexpr int zoom_step = 10;

QString text(const std::string& s) { return QString::fromStdString(s); }

// Widgets side by side.
QWidget* in_a_row(std::initializer_list<QWidget*> widgets, QWidget* parent) {
  auto* box = new QWidget(parent);
  auto* row = new QHBoxLayout(box);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(8);
  for (QWidget* widget : widgets) row->addWidget(widget);
  row->addStretch();
  return box;
}

}  // namespace

SettingsPage::SettingsPage(SettingsKeeper* keeper, QWidget* parent) : Page(parent), keeper_(keeper) {
  setAccessibleName(tr("Settings"));
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  outer->setSpacing(0);
  auto* header = new QWidget(this);
  header->setObjectName(QStringLiteral("pageHeader"));
  auto* header_row = new QHBoxLayout(header);
  header_row->setContentsMargins(16, 0, 12, 0);
  auto* title = new TextLabel(TextRole::title, Token::text, true, header);
  title->set_full_text(tr("Settings"));
  search_ = new QLineEdit(header);
  search_->setPlaceholderText(tr("Search settings"));
  search_->setAccessibleName(tr("Search settings"));
  search_->setClearButtonEnabled(true);
  header_row->addWidget(title);
  header_row->addStretch();
  header_row->addWidget(search_);
  outer->addWidget(header);
  scroll_ = new QScrollArea(this);
  scroll_->setAccessibleName(tr("Settings"));
  scroll_->setWidgetResizable(true);
  scroll_->setFrameShape(QFrame::NoFrame);
  body_ = new QWidget(scroll_);
  auto* centred = new QHBoxLayout(body_);
  centred->setContentsMargins(24, 12, 24, 24);
  column_ = new QVBoxLayout;
  centred->addLayout(column_, 3);
  centred->addStretch(2);
  scroll_->setWidget(body_);
  outer->addWidget(scroll_, 1);

  nothing_ = new TextLabel(TextRole::body, Token::text2, false, body_);
  nothing_->set_full_text(tr("No setting has such a name."));
  nothing_->hide();
  column_->addWidget(nothing_);
  build_appearance();
  build_notifications();
  facts_box_ = add_section(tr("This computer"));
  facts_ = grid_;
  facts_->setVerticalSpacing(5);
  column_->addStretch();

  connect(search_, &QLineEdit::textChanged, this, &SettingsPage::filter);
  const auto restyle = [this, header] {
    header->setFixedHeight(metrics().page_header());
    search_->setFixedWidth(metrics().scaled(240));
    show_look();
  };
  restyle();
  connect(&look(), &Look::changed, this, restyle);
}

QFrame* SettingsPage::add_section(const QString& title) {
  section_ = title;
  auto* heading = new TextLabel(TextRole::body, Token::text, true, body_);
  heading->set_full_text(title);
  column_->addWidget(heading);
  box_ = new QFrame(body_);
  box_->setObjectName(QStringLiteral("panel"));
  headings_[box_] = heading;
  grid_ = new QGridLayout(box_);
  grid_->setContentsMargins(12, 10, 12, 10);
  grid_->setHorizontalSpacing(16);
  grid_->setVerticalSpacing(8);
  const auto widths = [grid = grid_] { grid->setColumnMinimumWidth(0, metrics().scaled(210)); };
  widths();
  connect(&look(), &Look::changed, box_, widths);
  grid_->setColumnStretch(1, 1);
  column_->addWidget(box_);
  column_->addSpacing(12);
  return box_;
}

void SettingsPage::add_row(const QString& title, const QString& help, QWidget* content, QWidget* control) {
  auto* name = new TextLabel(TextRole::body, Token::text2, false, box_);
  name->set_full_text(title);
  const int line = grid_->rowCount();
  grid_->addWidget(name, line, 0, Qt::AlignLeft | Qt::AlignVCenter);
  grid_->addWidget(content, line, 1);
  items_.push_back({section_, title, help, box_, {name, content}, control});
  if (help.isEmpty()) return;
  auto* words = new TextLabel(TextRole::secondary, Token::text3, false, box_);
  words->set_full_text(help);
  words->setWordWrap(true);
  grid_->addWidget(words, line + 1, 1);
  control->setAccessibleDescription(help);
  items_.back().widgets.append(words);
}

void SettingsPage::build_appearance() {
  add_section(tr("Appearance"));
  themes_ = new QButtonGroup(this);
  auto* theme_row = in_a_row({}, box_);
  for (const auto& [mode, name] : {std::pair{ThemeMode::follow, tr("Follow the desktop")},
                                   {ThemeMode::light, tr("Light")},
                                   {ThemeMode::dark, tr("Dark")}}) {
    auto* choice = new QRadioButton(name, theme_row);
    choice->setAccessibleName(tr("Theme: %1").arg(name));
    themes_->addButton(choice, static_cast<int>(mode));
    static_cast<QHBoxLayout*>(theme_row->layout())->insertWidget(themes_->buttons().size() - 1, choice);
  }
  add_row(tr("Theme"), tr("Light or dark; following, the window changes with the desktop."), theme_row,
          themes_->buttons().front());
  auto* smaller = make_button(tr("Smaller"), {}, box_);
  auto* larger = make_button(tr("Larger"), {}, box_);
  zoom_ = new TextLabel(TextRole::body, Token::text, false, box_);
  zoom_->set_numbers(true);
  add_row(tr("Text size"), tr("Of everything in the window, from 70 % to 200 %."),
          in_a_row({smaller, zoom_, larger}, box_), smaller);
  auto* reset = make_button(tr("Reset the window's layout"), {}, box_);
  add_row(tr("Layout"), tr("Size, docks and text as they were at first. Saved perspectives stay."),
          in_a_row({reset}, box_), reset);
  auto* keys = make_button(tr("Edit shortcuts…"), {}, box_);
  add_row(tr("Keyboard shortcuts"), tr("Keys of every action, with a warning where two would be the same."),
          in_a_row({keys}, box_), keys);
  connect(themes_, &QButtonGroup::idClicked, this, [this](int id) { emit theme_chosen(static_cast<ThemeMode>(id)); });
  connect(smaller, &QPushButton::clicked, this, [this] { emit zoom_chosen(look().zoom() - zoom_step); });
  connect(larger, &QPushButton::clicked, this, [this] { emit zoom_chosen(look().zoom() + zoom_step); });
  connect(reset, &QPushButton::clicked, this, &SettingsPage::layout_reset);
  connect(keys, &QPushButton::clicked, this, &SettingsPage::shortcuts_wanted);
}

void SettingsPage::build_notifications() {
  add_section(tr("Notifications"));
  for (const auto& [kind, name] : notice_kinds()) {
    auto* box = new QCheckBox(tr("Tell me"), box_);
    box->setAccessibleName(tr("Tell me of: %1").arg(name));
    const auto show = [this, box, kind = kind] {
      const QSignalBlocker quiet(box);
      box->setChecked(!keeper_->settings().quiet_kinds.contains(kind));
    };
    show();
    connect(keeper_, &SettingsKeeper::changed, box, show);
    connect(box, &QCheckBox::toggled, this, [this, kind = kind](bool on) {
      keeper_->change([&](Settings& s) {
        s.quiet_kinds.removeAll(kind);
        if (!on) s.quiet_kinds.append(kind);
      });
    });
    add_row(name, {}, box, box);
  }
}

void SettingsPage::filter(const QString& typed) {
  const QStringList words = typed.split(QLatin1Char(' '), Qt::SkipEmptyParts);
  std::map<QFrame*, bool> shown;
  bool any = false;
  for (const Item& item : items_) {
    const QString all = item.section + QLatin1Char(' ') + item.title + QLatin1Char(' ') + item.help;
    const bool fits = std::all_of(words.begin(), words.end(),
                                  [&](const QString& word) { return all.contains(word, Qt::CaseInsensitive); });
    for (QWidget* widget : item.widgets) widget->setVisible(fits);
    shown[item.box] = shown[item.box] || fits;
    any = any || fits;
  }
  shown[facts_box_] = words.isEmpty();
  for (const auto& [box, visible] : shown) {
    box->setVisible(visible);
    headings_[box]->setVisible(visible);
  }
  nothing_->setVisible(!any);
}

void SettingsPage::reveal(const QString& title) {
  search_->clear();
  for (const Item& item : items_) {
    if (item.title != title) continue;
    scroll_->ensureWidgetVisible(item.control, 50, 120);
    item.control->setFocus(Qt::ShortcutFocusReason);
    return;
  }
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
      auto* key = new TextLabel(TextRole::secondary, Token::text3, false, facts_box_);
      key->set_full_text(name);
      label = new TextLabel(TextRole::secondary, Token::text, false, facts_box_);
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
