#include "ui/shell/dialogs.h"

#include <QApplication>
#include <QClipboard>
#include <QCoreApplication>
#include <QGridLayout>
#include <QScrollArea>

#include "ui/frame/action_set.h"
#include "ui/theme/widgets.h"

namespace stacklab::ui {
namespace {

QString tr(const char* words) { return QCoreApplication::translate("dialogs", words); }
QString text(const std::string& s) { return QString::fromStdString(s); }

QDialog* make_dialog(const char* name, const QString& title, QWidget* parent) {
  auto* dialog = new QDialog(parent);
  dialog->setObjectName(QLatin1String(name));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setWindowTitle(title);
  dialog->setAccessibleName(title);
  return dialog;
}

TextLabel* make_label(const QString& words, Token color, bool bold, QWidget* parent) {
  auto* label = new TextLabel(TextRole::body, color, bold, parent);
  label->set_full_text(words);
  return label;
}

// Headings and rows of two columns, in an area that scrolls.
class Sheet : public QScrollArea {
 public:
  explicit Sheet(const QString& name, QWidget* parent) : QScrollArea(parent) {
    setAccessibleName(name);
    setWidgetResizable(true);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    body_ = new QWidget(this);
    grid_ = new QGridLayout(body_);
    grid_->setHorizontalSpacing(24);
    grid_->setVerticalSpacing(4);
    grid_->setColumnStretch(1, 1);
    setWidget(body_);
  }
  void heading(const QString& words) {
    if (line_ > 0) grid_->setRowMinimumHeight(line_++, 8);
    grid_->addWidget(make_label(words, Token::text, true, body_), line_++, 0, 1, 2);
  }
  void row(const QString& left, const QString& right) {
    grid_->addWidget(make_label(left, Token::text2, false, body_), line_, 0, Qt::AlignTop);
    TextLabel* value = make_label(right, Token::text, false, body_);
    value->setWordWrap(true);
    value->setTextInteractionFlags(Qt::TextSelectableByMouse);
    grid_->addWidget(value, line_++, 1);
  }
  void end() { grid_->setRowStretch(line_, 1); }

 private:
  QWidget* body_;
  QGridLayout* grid_;
  int line_ = 0;
};

QPushButton* close_button(QDialog* dialog) {
  auto* close = make_button(tr("Close"), {}, dialog);
  close->setDefault(true);
  QObject::connect(close, &QPushButton::clicked, dialog, &QDialog::close);
  return close;
}

// Who made what is inside, and on which terms it may be passed on.
struct Licence {
  const char *name, *terms;
};
constexpr Licence licences[] = {
    {"Qt 6", "LGPL-3.0; Qt Charts: GPL-3.0"},
    {"SQLite", "public domain"},
    {"SQLiteCpp", "MIT"},
    {"Google Highway", "Apache-2.0 or BSD-3-Clause"},
    {"nlohmann/json", "MIT"},
    {"fmt", "MIT"},
    {"spdlog", "MIT"},
    {"tl::expected", "CC0-1.0"},
    {"utf8proc", "MIT"},
    {"OpenSSL", "Apache-2.0"},
    {"zlib", "Zlib"},
};

}  // namespace

QDialog* make_cheat_sheet(const ActionSet& actions, const QStringList& menu_order, QWidget* parent) {
  QDialog* dialog = make_dialog("cheatSheet", tr("Keys and gestures"), parent);
  auto* column = new QVBoxLayout(dialog);
  auto* sheet = new Sheet(tr("Keys and gestures"), dialog);
  QStringList menus = menu_order;
  for (const ActionSet::Entry& entry : actions.entries())
    if (!menus.contains(entry.menu)) menus << entry.menu;
  for (const QString& menu : menus) {
    bool titled = false;
    for (const ActionSet::Entry& entry : actions.entries()) {
      if (entry.menu != menu || entry.action->shortcut().isEmpty()) continue;
      if (!titled) sheet->heading(menu_text(menu));
      titled = true;
      sheet->row(QKeySequence::listToString(entry.action->shortcuts(), QKeySequence::NativeText),
                 plain_text(entry.action->text()));
    }
  }
  sheet->heading(tr("In a panel"));
  sheet->row(tr("Drag"), tr("zoom into the rectangle; a flat drag zooms along x"));
  sheet->row(tr("Wheel"), tr("zoom along x at the cursor; with Shift along y"));
  sheet->row(tr("Double click, Home"), tr("show everything"));
  sheet->row(tr("Left, Right"), tr("move the crosshair by a point; with Shift by ten"));
  sheet->row(tr("Plus, minus"), tr("zoom along x"));
  sheet->row(tr("Right click, Menu"), tr("export, table, axes"));
  sheet->heading(tr("In the run list"));
  sheet->row(tr("Click the line, Space"), tr("show or hide the run"));
  sheet->row(tr("Alt+click, Alt+Space"), tr("show it alone; again: all"));
  sheet->heading(tr("On the window"));
  sheet->row(tr("Drop a file or folder"), tr("a config starts a run, a workspace opens; others say what they are for"));
  sheet->end();
  column->addWidget(sheet);
  column->addWidget(close_button(dialog), 0, Qt::AlignRight);
  dialog->resize(metrics().scaled(600), metrics().scaled(660));
  return dialog;
}

QString about_text(const SystemInfo& info) {
  QStringList lines;
  lines << QStringLiteral("Stacklab %1%2").arg(text(info.version), text(info.commit.empty() ? "" : ", " + info.commit));
  lines << QStringLiteral("Compiler: %1").arg(text(info.compiler));
  lines << QStringLiteral("Qt %1").arg(QLatin1String(qVersion()));
  for (const auto& [name, version] : info.libraries) lines << text(name + " " + version);
  lines << QStringLiteral("Processor: %1, %2 threads, %3").arg(text(info.cpu)).arg(info.threads).arg(text(info.isa));
  for (const std::string& gpu : info.gpus) lines << QStringLiteral("GPU: %1").arg(text(gpu));
  lines << QStringLiteral("Fingerprint: %1").arg(text(info.fingerprint));
  return lines.join(QLatin1Char('\n')) + QLatin1Char('\n');
}

QDialog* make_about(const SystemInfo* info, QWidget* parent) {
  QDialog* dialog = make_dialog("about", tr("About Stacklab"), parent);
  auto* column = new QVBoxLayout(dialog);
  column->setContentsMargins(20, 16, 20, 16);
  column->setSpacing(8);
  auto* head = new QHBoxLayout;
  auto* picture = new QLabel(dialog);
  picture->setPixmap(QIcon(QStringLiteral(":/icons/stacklab.svg")).pixmap(metrics().scaled(48), metrics().scaled(48)));
  auto* title = new TextLabel(TextRole::title, Token::text, true, dialog);
  title->set_full_text(info ? tr("Stacklab %1").arg(text(info->version)) : tr("Stacklab"));
  head->addWidget(picture);
  head->addSpacing(8);
  head->addWidget(title);
  head->addStretch();
  column->addLayout(head);
  TextLabel* words =
      make_label(tr("A workbench to plan, train and understand small language models on the computer you have."),
                 Token::text2, false, dialog);
  words->setWordWrap(true);
  column->addWidget(words);
  auto* sheet = new Sheet(tr("Versions and licences"), dialog);
  sheet->heading(tr("Versions"));
  if (info) {
    if (!info->commit.empty()) sheet->row(tr("Commit"), text(info->commit));
    if (!info->compiler.empty()) sheet->row(tr("Compiler"), text(info->compiler));
  }
  sheet->row(QStringLiteral("Qt"), QLatin1String(qVersion()));
  if (info) {
    for (const auto& [name, version] : info->libraries) sheet->row(text(name), text(version));
    sheet->row(tr("Fingerprint"),
               tr("%1: runs are the same bit by bit where it is the same").arg(text(info->fingerprint)));
  }
  sheet->heading(tr("Licences"));
  sheet->row(QStringLiteral("Stacklab"), QStringLiteral("MIT"));
  for (const Licence& one : licences) sheet->row(QLatin1String(one.name), QLatin1String(one.terms));
  sheet->end();
  column->addWidget(sheet, 1);
  auto* last = new QHBoxLayout;
  if (info) {
    auto* copy = make_button(tr("Copy versions"), {}, dialog);
    copy->setAutoDefault(false);
    QObject::connect(copy, &QPushButton::clicked, dialog,
                     [words = about_text(*info)] { QApplication::clipboard()->setText(words); });
    last->addWidget(copy);
  }
  last->addStretch();
  last->addWidget(close_button(dialog));
  column->addLayout(last);
  dialog->resize(metrics().scaled(560), metrics().scaled(520));
  return dialog;
}

QDialog* make_question(const QString& fact, const QString& help, const QString& action, std::function<void()> call,
                       QWidget* parent) {
  QDialog* dialog = make_dialog("question", tr("Stacklab"), parent);
  auto* column = new QVBoxLayout(dialog);
  column->setContentsMargins(24, 20, 20, 16);
  column->setSpacing(8);
  for (const bool first : {true, false}) {
    TextLabel* label = make_label(first ? fact : help, first ? Token::text : Token::text2, first, dialog);
    label->setWordWrap(true);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    label->setMinimumWidth(metrics().scaled(400));
    column->addWidget(label);
  }
  auto* last = new QHBoxLayout;
  last->addStretch();
  auto* close = make_button(action.isEmpty() ? tr("Close") : tr("Cancel"), {}, dialog);
  QObject::connect(close, &QPushButton::clicked, dialog, &QDialog::reject);
  last->addWidget(close);
  if (action.isEmpty()) {
    close->setDefault(true);
  } else {
    auto* does = make_button(action, {}, dialog);
    make_primary(does);
    // A button that has the focus would be the default in its place.
    close->setAutoDefault(false);
    does->setDefault(true);
    does->setFocus();
    QObject::connect(does, &QPushButton::clicked, dialog, [dialog, call = std::move(call)] {
      dialog->accept();
      if (call) call();
    });
    last->addWidget(does);
  }
  column->addSpacing(6);
  column->addLayout(last);
  return dialog;
}

}  // namespace stacklab::ui
