/* SPDX-License-Identifier: Apache-2.0 */
/* svg.c - see svg.h. */
#include "config.h"

#include "draw/svg.h"

#include "base/utf8.h"

#include <math.h>
#include <string.h>

static const char style[] =
    "text{font-family:system-ui,'Segoe UI',Helvetica,Arial,'DejaVu Sans',"
    "sans-serif;font-size:12px;fill:#24292f}"
    ".h{font-size:16px;font-weight:600}.s{font-size:11px;fill:#57606a}"
    ".e{text-anchor:end}.m{text-anchor:middle}"
    ".w{fill:#fff}.p{fill:#f6f7f9}.g{stroke:#dfe3e8;stroke-width:1}"
    ".a{stroke:#8b949e;stroke-width:1;fill:none}.n{fill:#e4e7eb}"
    ".v{fill:#000;fill-opacity:0}.v:hover{fill-opacity:.08}"
    "path{fill:none}";

static const char dark_style[] =
    "text{fill:#e6edf3}.s{fill:#9aa4af}.w{fill:#15181d}.p{fill:#1b1f25}"
    ".g{stroke:#2c323a}.a{stroke:#6e7681}.n{fill:#262b32}.v{fill:#fff}";

static void add_escaped(struct ep_buf *b, const char *s, size_t len)
{
    while (len) {
        unsigned char c = (unsigned char)*s;
        int n = ep_utf8_len(s, len);

        if (n <= 0) {
            ep_buf_adds(b, "\xef\xbf\xbd");
            n = 1;
        } else if (c == '&') {
            ep_buf_adds(b, "&amp;");
        } else if (c == '<') {
            ep_buf_adds(b, "&lt;");
        } else if (c == '>') {
            ep_buf_adds(b, "&gt;");
        } else if (c == '"') {
            ep_buf_adds(b, "&quot;");
        } else if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f ||
                   (n == 3 && memcmp(s, "\xef\xbf", 2) == 0 &&
                    (unsigned char)s[2] >= 0xbe)) {
            ep_buf_adds(b, "\xef\xbf\xbd"); /* also U+FFFE and U+FFFF */
        } else {
            ep_buf_add(b, s, (size_t)n);
        }
        s += n;
        len -= (size_t)n;
    }
}

/* A coordinate: at most one digit behind the point, no "-0". */
static void add_number(struct ep_buf *b, double v)
{
    long tenths = lround(fmin(fmax(v, -1e7), 1e7) * 10);

    if (tenths < 0) {
        ep_buf_addc(b, '-');
        tenths = -tenths;
    }
    if (tenths >= 10 || tenths % 10 == 0)
        ep_buf_addf(b, "%ld", tenths / 10);
    if (tenths % 10)
        ep_buf_addf(b, ".%ld", tenths % 10);
}

static void attribute(struct ep_svg *s, const char *name, double v)
{
    ep_buf_addf(s->out, " %s=\"", name);
    add_number(s->out, v);
    ep_buf_addc(s->out, '"');
}

static void element(struct ep_svg *s, const char *name, const char *cls)
{
    ep_buf_addf(s->out, "<%s", name);
    if (cls && *cls)
        ep_buf_addf(s->out, " class=\"%s\"", cls);
}

static void end(struct ep_svg *s, const char *name, const char *title)
{
    if (!title) {
        ep_buf_adds(s->out, "/>\n");
        return;
    }
    ep_buf_adds(s->out, "><title>");
    add_escaped(s->out, title, strlen(title));
    ep_buf_addf(s->out, "</title></%s>\n", name);
}

void ep_svg_begin(struct ep_svg *s, struct ep_buf *out, double width,
                  double height, const char *title, const char *desc)
{
    *s = (struct ep_svg){.out = out};
    ep_buf_adds(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
                "aria-labelledby=\"title desc\"");
    attribute(s, "width", width);
    attribute(s, "height", height);
    ep_buf_adds(out, " viewBox=\"0 0 ");
    add_number(out, width);
    ep_buf_addc(out, ' ');
    add_number(out, height);
    ep_buf_adds(out, "\">\n<title id=\"title\">");
    add_escaped(out, title, strlen(title));
    ep_buf_adds(out, "</title>\n<desc id=\"desc\">");
    add_escaped(out, desc, strlen(desc));
    ep_buf_adds(out, "</desc>\n");
    ep_svg_style(s, style, dark_style);
    ep_svg_style(s, ".bg{fill:#fff}", ".bg{fill:#15181d}");
    ep_svg_rect(s, "bg", (const double[4]){0, 0, width, height}, NULL);
}

void ep_svg_end(struct ep_svg *s)
{
    ep_buf_adds(s->out, "</svg>\n");
}

void ep_svg_style(struct ep_svg *s, const char *light, const char *dark)
{
    ep_buf_addf(s->out, "<style>%s", light);
    if (*dark)
        ep_buf_addf(s->out, "\n@media (prefers-color-scheme:dark){%s}\n", dark);
    ep_buf_adds(s->out, "</style>\n");
}

void ep_svg_group(struct ep_svg *s, const char *cls, double x, double y)
{
    element(s, "g", cls);
    if (x != 0 || y != 0) {
        ep_buf_adds(s->out, " transform=\"translate(");
        add_number(s->out, x);
        ep_buf_addc(s->out, ' ');
        add_number(s->out, y);
        ep_buf_adds(s->out, ")\"");
    }
    ep_buf_adds(s->out, ">\n");
}

void ep_svg_group_end(struct ep_svg *s)
{
    ep_buf_adds(s->out, "</g>\n");
}

void ep_svg_rect(struct ep_svg *s, const char *cls, const double xywh[4],
                 const char *title)
{
    element(s, "rect", cls);
    if (xywh[0] != 0)
        attribute(s, "x", xywh[0]);
    if (xywh[1] != 0)
        attribute(s, "y", xywh[1]);
    attribute(s, "width", xywh[2]);
    attribute(s, "height", xywh[3]);
    end(s, "rect", title);
}

void ep_svg_line(struct ep_svg *s, const char *cls, double x1, double y1,
                 double x2, double y2)
{
    ep_svg_path(s, cls);
    ep_svg_move(s, x1, y1);
    ep_svg_to(s, x2, y2);
    ep_svg_path_end(s, NULL);
}

void ep_svg_circle(struct ep_svg *s, const char *cls, double x, double y,
                   double r, const char *title)
{
    element(s, "circle", cls);
    attribute(s, "cx", x);
    attribute(s, "cy", y);
    attribute(s, "r", r);
    end(s, "circle", title);
}

void ep_svg_path(struct ep_svg *s, const char *cls)
{
    element(s, "path", cls);
    ep_buf_adds(s->out, " d=\"");
}

static void point(struct ep_svg *s, char verb, double x, double y)
{
    /* positions are multiples of a tenth, so that steps do not drift */
    ep_buf_addc(s->out, verb);
    add_number(s->out, x);
    ep_buf_addc(s->out, ' ');
    add_number(s->out, y);
    s->pen_x = x;
    s->pen_y = y;
}

void ep_svg_move(struct ep_svg *s, double x, double y)
{
    point(s, 'M', x, y);
}

void ep_svg_to(struct ep_svg *s, double x, double y)
{
    if (fabs(x - s->pen_x) < 0.05 && fabs(y - s->pen_y) < 0.05)
        return;
    point(s, 'L', x, y);
}

void ep_svg_path_end(struct ep_svg *s, const char *title)
{
    ep_buf_addc(s->out, '"');
    end(s, "path", title);
}

void ep_svg_text(struct ep_svg *s, const char *cls, double x, double y,
                 const char *text)
{
    element(s, "text", cls);
    attribute(s, "x", x);
    attribute(s, "y", y);
    ep_buf_addc(s->out, '>');
    add_escaped(s->out, text, strlen(text));
    ep_buf_adds(s->out, "</text>\n");
}

/* Width of a character of the size 1, a little above that of DejaVu Sans, the
   widest of the fonts that the style names. */
static double advance(const char *c, int n)
{
    if (n > 2)
        return 1.02; /* CJK and the like */
    if (n == 2)
        return 0.66;
    if (strchr("ijl.,:;|'!", *c))
        return 0.33;
    if (strchr("frt()[] /-", *c))
        return 0.41;
    if (strchr("mwMW%@", *c))
        return 0.97;
    return *c >= 'A' && *c <= 'Z' ? 0.72 : 0.64;
}

/* The length of the beginning of text that fits, and how wide it is. */
static size_t fit(const char *text, double size, double width, double *used)
{
    size_t len = strlen(text), at = 0;

    *used = 0;
    while (at < len) {
        int n = ep_utf8_len(text + at, len - at);
        double w = size * advance(text + at, n > 0 ? n : 1);

        if (*used + w > width)
            break;
        *used += w;
        at += n > 0 ? (size_t)n : 1;
    }
    return at;
}

double ep_svg_text_width(const char *text, double size)
{
    double used;

    (void)fit(text, size, (double)INFINITY, &used);
    return used;
}

void ep_svg_text_in(struct ep_svg *s, const char *cls, const double at[2],
                    double size, double width, const char *text)
{
    double used;
    size_t n = fit(text, size, width, &used);

    if (!text[n]) {
        ep_svg_text(s, cls, at[0], at[1], text);
        return;
    }
    n = fit(text, size, width - size, &used);
    element(s, "text", cls);
    attribute(s, "x", at[0]);
    attribute(s, "y", at[1]);
    ep_buf_adds(s->out, "><title>");
    add_escaped(s->out, text, strlen(text));
    ep_buf_adds(s->out, "</title>");
    add_escaped(s->out, text, n);
    ep_buf_adds(s->out, "\xe2\x80\xa6</text>\n");
}

#define TITLE_LINES 2
#define SUMMARY_LINES 3

/* A text of the head: how it is set, how many lines it may take. */
struct setting {
    const char *cls;
    double size, pitch;
    int most;
};

static const struct setting title_set = {"h", 17, 20, TITLE_LINES};
static const struct setting summary_set = {"s", 11, 14, SUMMARY_LINES};

/* How much of text its first line takes: up to a blank, if there is one. */
static size_t line_of(const char *text, double size, double width)
{
    double used;
    size_t n = fit(text, size, width, &used), blank = n;

    if (!text[n])
        return n;
    while (blank && text[blank] != ' ')
        blank--;
    return blank ? blank : n;
}

/* Set lines from base line y on; returns how many. s: NULL: only count. */
static int set_lines(struct ep_svg *s, const struct setting *how,
                     const double at[2], double width, const char *text)
{
    int lines = 1;

    for (;; lines++) {
        size_t n = line_of(text, how->size, width);
        double y = at[1] + (lines - 1) * how->pitch;

        if (lines == how->most || !text[n]) {
            if (s)
                ep_svg_text_in(s, how->cls, (const double[2]){at[0], y},
                               how->size, width, text);
            return lines;
        }
        if (s) {
            element(s, "text", how->cls);
            attribute(s, "x", at[0]);
            attribute(s, "y", y);
            ep_buf_addc(s->out, '>');
            add_escaped(s->out, text, n);
            ep_buf_adds(s->out, "</text>\n");
        }
        text += n + (text[n] == ' ');
    }
}

void ep_svg_head(struct ep_svg *s, double x, double width, const char *title,
                 const char *summary)
{
    int n = set_lines(s, &title_set, (const double[2]){x, 26}, width, title);
    double y = 43 + (n - 1) * title_set.pitch;

    (void)set_lines(s, &summary_set, (const double[2]){x, y}, width, summary);
}

double ep_svg_head_more(double width, const char *title, const char *summary)
{
    const double at[2] = {0, 0};

    return (set_lines(NULL, &title_set, at, width, title) - 1) *
               title_set.pitch +
           (set_lines(NULL, &summary_set, at, width, summary) - 1) *
               summary_set.pitch;
}
