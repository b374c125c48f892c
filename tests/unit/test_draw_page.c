/* SPDX-License-Identifier: Apache-2.0 */
/* test_draw_page.c - what is put on pages: SVG's text and numbers, and the
   cells of a terminal. */
#include "config.h"

#include "draw/canvas.h"
#include "draw/svg.h"

#include <string.h>

#include "tap.h"

static int same(const char *got, const char *want)
{
    int c = strcmp(got, want) == 0;

    if (!c)
        printf("# got  %s\n# want %s\n", got, want);
    return c;
}

static void test_text(void)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"a<b>&\"c\"", "a&lt;b&gt;&amp;&quot;c&quot;"},
        {"</text><script>", "&lt;/text&gt;&lt;script&gt;"},
        {"\x01\x1f\x7f", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xff\xc3", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xef\xbf\xbe\xef\xbf\xbf", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xef\xbf\xbd \xc3\xa9 \xe2\x82\xac",
         "\xef\xbf\xbd \xc3\xa9 \xe2\x82\xac"},
        {"tab\tline\n", "tab\tline\n"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct ep_buf out, want;
        struct ep_svg s = {.out = &out};

        ep_buf_init(&out);
        ep_buf_init(&want);
        ep_svg_text(&s, "t", 1, 2, rows[i].in);
        ep_buf_addf(&want, "<text class=\"t\" x=\"1\" y=\"2\">%s</text>\n",
                    rows[i].out);
        ok(same(out.ptr, want.ptr));
        ep_buf_free(&out);
        ep_buf_free(&want);
    }
}

static void test_numbers(void)
{
    struct ep_buf out;
    struct ep_svg s = {.out = &out};

    ep_buf_init(&out);
    ep_svg_path(&s, "");
    ep_svg_move(&s, 0.04, -0.04);
    ep_svg_to(&s, 0.05, 0.06);
    ep_svg_to(&s, -0.55, 12.349);
    ep_svg_to(&s, -0.55, 12.351); /* less than a tenth away: left out */
    ep_svg_to(&s, 1e300, -1e300);
    ep_svg_path_end(&s, NULL);
    ok(same(out.ptr, "<path d=\"M0 0L.1 .1L-.6 12.3L10000000 -10000000\"/>\n"));
    ep_buf_reset(&out);
    ep_svg_rect(&s, "c1", (const double[4]){0, 3, 4.5, 5}, "x & y");
    ok(same(out.ptr,
            "<rect class=\"c1\" y=\"3\" width=\"4.5\" height=\"5\">"
            "<title>x &amp; y</title></rect>\n"));
    ep_buf_free(&out);
}

static void test_fit(void)
{
    struct ep_buf out;
    struct ep_svg s = {.out = &out};

    ep_buf_init(&out);
    ep_svg_text_in(&s, "", (const double[2]){0, 0}, 10, 1000, "short");
    ok(same(out.ptr, "<text x=\"0\" y=\"0\">short</text>\n"));
    ep_buf_reset(&out);
    ep_svg_text_in(&s, "", (const double[2]){0, 0}, 10, 40, "too long & wide");
    ok(strstr(out.ptr, "<title>too long &amp; wide</title>") != NULL);
    ok(strstr(out.ptr, "\xe2\x80\xa6</text>") != NULL);
    ok(ep_svg_text_width("iiii", 10) < ep_svg_text_width("mmmm", 10));
    near(ep_svg_text_width("1234", 20), 2 * ep_svg_text_width("1234", 10),
         1e-9);
    ep_buf_free(&out);
}

/* The head: what it says it takes, and all words are there. */
static void test_head(void)
{
    static const char summary[] = "one two three four five six seven eight";
    struct ep_svg s;
    struct ep_buf b;

    ep_buf_init(&b);
    s.out = &b;
    near(ep_svg_head_more(900, "title", summary), 0, 0);
    near(ep_svg_head_more(150, "title", summary), 14, 0);
    ep_svg_head(&s, 14, 150, "title", summary);
    ok(strstr(b.ptr, "y=\"43\">one two three four") != NULL);
    ok(strstr(b.ptr, "y=\"57\">") != NULL && strstr(b.ptr, "eight<") != NULL);
    ok(strstr(b.ptr, "\xe2\x80\xa6") == NULL);
    ep_buf_reset(&b);
    ep_svg_head(&s, 14, 60, "a title of words", summary);
    near(ep_svg_head_more(60, "a title of words", summary), 20 + 2 * 14, 0);
    ok(strstr(b.ptr, "y=\"91\"><title>") != NULL); /* the third line, cut */
    ep_buf_free(&b);
}

static void test_wrap(void)
{
    const struct ep_term term = {20, 5, false, EP_DEPTH_NONE};
    struct ep_canvas *c = ep_canvas_new(&term, 20, 5);
    struct ep_buf b;

    ep_buf_init(&b);
    ok(ep_canvas_wrap(NULL, (const int[2]){0, 0}, 9, 3, "") == 1);
    ok(ep_canvas_wrap(NULL, (const int[2]){0, 0}, 9, 3, "nine char") == 1);
    ok(ep_canvas_wrap(c, (const int[2]){2, 1}, 9, 9, "nine char and ten") == 2);
    ok(ep_canvas_wrap(c, (const int[2]){0, 3}, 9, 2,
                      "unbreakables and more than fits") == 2);
    ep_canvas_print(c, &b);
    ok(strcmp(b.ptr, "\n  nine char\n  and ten\nunbreakab\nles an...\n") == 0);
    ep_canvas_free(c);
    ep_buf_free(&b);
}

static void test_canvas(void)
{
    static const char turning[] = {'\xe2', '\x80', '\xae', 'a', 'b', '\xc2',
                                   '\x9b', '\xc3', '\xa9', '.', '\0'};
    struct ep_term mono = {20, 4, false, EP_DEPTH_NONE};
    struct ep_term full = {20, 4, true, EP_DEPTH_TRUE};
    struct ep_canvas *c = ep_canvas_new(&mono, 6, 4);
    struct ep_buf out;

    ep_buf_init(&out);
    ep_canvas_text(c, 1, 0,
                   "a\x1b\xc3\xa9"
                   "bcdef",
                   0xff0000);
    ep_canvas_put(c, -1, 0, 'x', EP_NO_COLOUR, EP_NO_COLOUR);
    ep_canvas_put(c, 6, 0, 'x', EP_NO_COLOUR, EP_NO_COLOUR);
    ep_canvas_put(c, 0, 4, 'x', EP_NO_COLOUR, EP_NO_COLOUR);
    ep_canvas_text_end(c, 5, 1, "end");
    ep_canvas_print(c, &out);
    ok(same(out.ptr, " a??bc\n   end\n"));
    ep_canvas_free(c);

    c = ep_canvas_new(&full, 6, 2);
    ep_buf_reset(&out);
    ep_canvas_dot(c, 0, 0, 0x0000ff); /* dots 1 and 8 of one cell */
    ep_canvas_dot(c, 1, 3, EP_NO_COLOUR);
    ep_canvas_dot(c, 12, 0, 0);
    ep_canvas_put(c, 2, 0, ' ', EP_NO_COLOUR, 0x102030);
    ep_canvas_print(c, &out);
    ok(same(out.ptr,
            "\033[0;38;2;0;0;255m\xe2\xa2\x81\033[0m \033[0;48;2;16;"
            "32;48m \033[0m\n"));
    ep_canvas_free(c);

    c = ep_canvas_new(&full, 6, 1);
    ep_buf_reset(&out);
    /* marks that turn the direction of writing (here U+202E, RIGHT-TO-LEFT
       OVERRIDE) stay out of the terminal */
    ep_canvas_text_in(c, 0, 0, 6, turning);
    ep_canvas_print(c, &out);
    ok(same(out.ptr, "?ab?\xc3\xa9.\n"));
    ep_buf_reset(&out);
    ep_canvas_text_in(c, 0, 0, 6, "abcdefg");
    ep_canvas_print(c, &out);
    ok(same(out.ptr, "abc...\n"));
    ep_canvas_free(c);
    ep_buf_free(&out);
}

int main(void)
{
    test_text();
    test_numbers();
    test_fit();
    test_head();
    test_wrap();
    test_canvas();
    return tap_done();
}
