// The colours of the window, measured: contrast of every pair that meets, and distance of the runs' colours, also to
// eyes that see fewer colours. The minima are those of the look's table.
#include <QFile>
#include <array>
#include <cmath>

#include "tests/ui/ui_test.h"
#include "ui/theme/look.h"
#include "ui/theme/numbers.h"

namespace stacklab::ui {
namespace {

using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;

double to_linear(double c) { return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4); }

Vector linear_rgb(const QColor& c) { return {to_linear(c.redF()), to_linear(c.greenF()), to_linear(c.blueF())}; }

Vector times(const Matrix& m, const Vector& v) {
  Vector r{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) r[i] += m[i][j] * v[j];
  return r;
}

// CIE L*a*b* of linear sRGB under D65.
Vector lab(Vector rgb) {
  for (double& c : rgb) c = std::min(1.0, std::max(0.0, c));
  const Matrix to_xyz = {
      {{0.4124564, 0.3575761, 0.1804375}, {0.2126729, 0.7151522, 0.0721750}, {0.0193339, 0.1191920, 0.9503041}}};
  Vector xyz = times(to_xyz, rgb);
  const Vector white = {0.95047, 1.0, 1.08883};
  for (std::size_t i = 0; i < 3; ++i) {
    const double t = xyz[i] / white[i];
    xyz[i] = t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116;
  }
  return {116 * xyz[1] - 16, 500 * (xyz[0] - xyz[1]), 200 * (xyz[1] - xyz[2])};
}

double ciede2000(const Vector& p, const Vector& q) {
  const double degrees = M_PI / 180;
  const double c_mean = (std::hypot(p[1], p[2]) + std::hypot(q[1], q[2])) / 2;
  const double g = 0.5 * (1 - std::sqrt(std::pow(c_mean, 7) / (std::pow(c_mean, 7) + std::pow(25.0, 7))));
  const double a1 = (1 + g) * p[1], a2 = (1 + g) * q[1];
  const double c1 = std::hypot(a1, p[2]), c2 = std::hypot(a2, q[2]);
  const auto hue = [&](double b, double a) {
    const double h = std::atan2(b, a) / degrees;
    return h < 0 ? h + 360 : h;
  };
  const double h1 = hue(p[2], a1), h2 = hue(q[2], a2);
  double dh = h2 - h1;
  if (dh > 180) dh -= 360;
  if (dh < -180) dh += 360;
  if (c1 * c2 == 0) dh = 0;
  const double d_l = q[0] - p[0], d_c = c2 - c1, d_h = 2 * std::sqrt(c1 * c2) * std::sin(dh / 2 * degrees);
  const double l = (p[0] + q[0]) / 2, c = (c1 + c2) / 2;
  double h = h1 + h2;
  if (c1 * c2 != 0) h = std::abs(h1 - h2) <= 180 ? h / 2 : h < 360 ? (h + 360) / 2 : (h - 360) / 2;
  const double t = 1 - 0.17 * std::cos((h - 30) * degrees) + 0.24 * std::cos(2 * h * degrees) +
                   0.32 * std::cos((3 * h + 6) * degrees) - 0.20 * std::cos((4 * h - 63) * degrees);
  const double theta = 30 * std::exp(-std::pow((h - 275) / 25, 2));
  const double r_c = 2 * std::sqrt(std::pow(c, 7) / (std::pow(c, 7) + std::pow(25.0, 7)));
  const double s_l = 1 + 0.015 * std::pow(l - 50, 2) / std::sqrt(20 + std::pow(l - 50, 2));
  const double s_c = 1 + 0.045 * c, s_h = 1 + 0.015 * c * t, r_t = -std::sin(2 * theta * degrees) * r_c;
  return std::sqrt(std::pow(d_l / s_l, 2) + std::pow(d_c / s_c, 2) + std::pow(d_h / s_h, 2) +
                   r_t * (d_c / s_c) * (d_h / s_h));
}

// Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
const Matrix normal = {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
const Matrix protanopia = {
    {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}};
const Matrix deuteranopia = {
    {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}};
const Matrix tritanopia = {
    {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}};

double smallest_distance(const Theme& theme, const Matrix& eye, int first) {
  double smallest = 1e9;
  for (int i = 0; i < first; ++i)
    for (int j = 0; j < i; ++j)
      smallest = std::min(smallest, ciede2000(lab(times(eye, linear_rgb(theme.run_color(i)))),
                                              lab(times(eye, linear_rgb(theme.run_color(j))))));
  return smallest;
}

// The table gives one decimal.
constexpr double rounding = 0.05;

struct Minima {
  bool dark;
  double text, text2, text3, accent, semantic, semantic_on_soft, input, run, ink;
  double normal, deuteranopia, protanopia, tritanopia;
};

class ThemeMinima : public testing::TestWithParam<Minima> {};

TEST_P(ThemeMinima, ContrastHolds) {
  const Minima& m = GetParam();
  const Theme theme = Theme::builtin(m.dark);
  EXPECT_EQ(theme.is_dark(), m.dark);
  const std::array grounds = {Token::window, Token::surface, Token::sunken, Token::hover, Token::soft, Token::raised};
  const auto expect = [&](Token ink, Token ground, double least) {
    EXPECT_GE(contrast(theme[ink], theme[ground]), least - rounding) << token_name(ink) << " on " << token_name(ground);
  };
  for (const Token ground : grounds) {
    expect(Token::text, ground, m.text);
    expect(Token::text2, ground, m.text2);
    expect(Token::text3, ground, m.text3);
    expect(Token::accent, ground, m.accent);
    for (const Token semantic : {Token::good, Token::warn, Token::bad, Token::info})
      expect(semantic, ground, m.semantic);
    expect(Token::input, ground, m.input);
  }
  expect(Token::good, Token::good_soft, m.semantic_on_soft);
  expect(Token::warn, Token::warn_soft, m.semantic_on_soft);
  expect(Token::bad, Token::bad_soft, m.semantic_on_soft);
  expect(Token::info, Token::info_soft, m.semantic_on_soft);
  expect(Token::on_accent, Token::accent, 4.5);
  for (int n = 0; n < 10; ++n) {
    EXPECT_GE(contrast(theme.run_color(n), theme[Token::surface]), m.run - rounding) << "run " << n;
    EXPECT_GE(contrast(theme.run_ink(n), theme[Token::surface]), m.ink - rounding) << "ink " << n;
  }
}

TEST_P(ThemeMinima, RunsStayApart) {
  const Minima& m = GetParam();
  const Theme theme = Theme::builtin(m.dark);
  EXPECT_GE(smallest_distance(theme, normal, 10), m.normal - rounding);
  EXPECT_GE(smallest_distance(theme, deuteranopia, 10), m.deuteranopia - rounding);
  EXPECT_GE(smallest_distance(theme, protanopia, 10), m.protanopia - rounding);
  EXPECT_GE(smallest_distance(theme, tritanopia, 10), m.tritanopia - rounding);
  EXPECT_GE(smallest_distance(theme, deuteranopia, 5), 17 - rounding);
  EXPECT_GE(smallest_distance(theme, protanopia, 5), 17 - rounding);
}

INSTANTIATE_TEST_SUITE_P(
    Themes, ThemeMinima,
    testing::Values(Minima{false, 13.9, 6.6, 4.5, 5.3, 4.6, 4.7, 3.0, 3.1, 4.6, 19.1, 12.7, 12.9, 9.7},
                    Minima{true, 10.9, 6.9, 4.6, 5.1, 5.3, 5.8, 3.1, 4.0, 4.6, 15.0, 12.3, 12.3, 11.3}),
    [](const auto& given) { return given.param.dark ? "Dark" : "Light"; });

TEST(Theme, RefusesWhatIsNotWhole) {
  EXPECT_FALSE(Theme::parse("{}"));
  EXPECT_FALSE(Theme::parse("no json"));
  QFile file(QStringLiteral(":/theme/light.json"));
  ASSERT_TRUE(file.open(QIODevice::ReadOnly));
  QByteArray json = file.readAll();
  EXPECT_TRUE(Theme::parse(json));
  EXPECT_FALSE(Theme::parse(QByteArray(json).replace("#4A50C8", "indigo-ish")));
  EXPECT_FALSE(Theme::parse(QByteArray(json).replace("\"grid\"", "\"grit\"")));
}

TEST(Theme, RunsRepeatColourWithAnotherDash) {
  const Theme theme = Theme::builtin(false);
  EXPECT_EQ(theme.run_color(3), theme.run_color(13));
  EXPECT_TRUE(run_dash(3).isEmpty());
  EXPECT_FALSE(run_dash(13).isEmpty());
  EXPECT_NE(run_dash(13), run_dash(23));
  EXPECT_NE(run_dash(23), run_dash(33));
  EXPECT_EQ(run_dash(3), run_dash(43));
}

TEST(Theme, StyleSheetHasNoHolesLeft) {
  for (const ThemeMode mode : {ThemeMode::light, ThemeMode::dark}) {
    look().set_mode(mode);
    EXPECT_FALSE(qApp->styleSheet().contains(QLatin1Char('@'))) << qApp->styleSheet().toStdString();
    EXPECT_EQ(QApplication::palette().color(QPalette::Window), theme()[Token::window]);
  }
}

TEST(Theme, FollowsTheDesktop) {
  look().set_mode(ThemeMode::follow);
  ASSERT_FALSE(theme().is_dark());
  // What a desktop's change leaves behind: the colours that the window has not set itself.
  const QPalette light = QApplication::palette();
  QPalette dark = light;
  dark.setColor(QPalette::Disabled, QPalette::Window, QColor(30, 30, 30));
  QApplication::setPalette(dark);
  EXPECT_TRUE(wait_until([] { return theme().is_dark(); }));
  look().set_mode(ThemeMode::light);
  EXPECT_FALSE(theme().is_dark());
  look().set_mode(ThemeMode::follow);
  EXPECT_TRUE(theme().is_dark());
  QPalette back = QApplication::palette();
  back.setColor(QPalette::Disabled, QPalette::Window, QColor(240, 240, 240));
  QApplication::setPalette(back);
  EXPECT_TRUE(wait_until([] { return !theme().is_dark(); }));
}

TEST(Theme, ZoomScalesFontsAndLengths) {
  look().set_zoom(100);
  const int f = metrics().f, body = look().font(TextRole::body).pixelSize();
  look().set_zoom(200);
  EXPECT_EQ(look().font(TextRole::body).pixelSize(), 2 * body);
  EXPECT_GT(metrics().f, 3 * f / 2);
  EXPECT_EQ(metrics().control(), metrics().f + 10);
  look().set_zoom(1000);
  EXPECT_EQ(look().zoom(), 200);
  look().set_zoom(100);
  EXPECT_EQ(metrics().f, f);
}

TEST(Numbers, AreWrittenAsTheLookSays) {
  EXPECT_EQ(format_loss(3.1489), "3.149");
  EXPECT_EQ(format_loss(std::nan("")), "NaN");
  EXPECT_EQ(format_loss(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(format_rate(2e-2), "2.0e-2");
  EXPECT_EQ(format_rate(1.5e-3), "1.5e-3");
  EXPECT_EQ(format_compact(231500), "231.5k");
  EXPECT_EQ(format_compact(12), "12");
  EXPECT_EQ(format_amount(6.54e9), "6.54 B");
  EXPECT_EQ(format_amount(880640), "880,640");
  EXPECT_EQ(format_count(101353728), "101,353,728");
  EXPECT_EQ(format_bytes(24500000000), "24.5 GB");
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_duration(42), "42 s");
  EXPECT_EQ(format_duration(250), "4 min 10 s");
  EXPECT_EQ(format_duration(13 * 3600 + 45 * 60), "13 h 45 min");
  EXPECT_EQ(format_duration(52 * 3600), "2 d 4 h");
  EXPECT_EQ(format_duration(-1), missing());
  EXPECT_EQ(format_percent(0.451), "45 %");
  EXPECT_EQ(format_percent(0.999), "99 %");  // never "100 %" before the end
  EXPECT_EQ(format_percent(1), "100 %");
}

}  // namespace
}  // namespace stacklab::ui
