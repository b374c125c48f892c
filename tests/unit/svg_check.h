/* SPDX-License-Identifier: Apache-2.0 */
/*
 * svg_check.h - is it a well-formed document that stands alone? As much of XML
 * as the writer uses: elements that nest, attributes in double quotes, the five
 * entities, no control characters. For tests and the fuzz target, where
 * xmllint(1) is too slow; skewplot.bats has a real parser read the pictures.
 */
#ifndef EP_SVG_CHECK_H
#define EP_SVG_CHECK_H

#include "base/buf.h"
#include "base/utf8.h"

#include <stdbool.h>
#include <string.h>

enum { SVG_DEPTH = 16 };

/* Text up to stop; NULL if there is something that may not be there. */
static inline const char *svg_text(const char *s, char stop)
{
    static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;"};

    while (*s && *s != stop) {
        int n = ep_utf8_len(s, strnlen(s, 4));
        bool known = *s != '&';

        if (n <= 0 || *s == '<' || *s == '>' || *s == '\x7f' ||
            ((unsigned char)*s < 0x20 && *s != '\n' && *s != '\t'))
            return NULL;
        for (size_t i = 0; i < 4 && !known; i++)
            known = strncmp(s, entities[i], strlen(entities[i])) == 0;
        if (!known)
            return NULL;
        s += n;
    }
    return s;
}

/* ' name="value"' over and over; NULL as above. No href, no on..., no url. */
static inline const char *svg_attributes(const char *s)
{
    while (*s == ' ') {
        const char *name = ++s;

        s = strchr(s, '=');
        if (!s || s[1] != '"' || strncmp(name, "on", 2) == 0 ||
            strncmp(name, "href", 4) == 0)
            return NULL;
        s = svg_text(s + 2, '"');
        if (!s || !*s++)
            return NULL;
    }
    return s;
}

static inline bool svg_is_sound(const struct ep_buf *b)
{
    const char *s = b->ptr, *name[SVG_DEPTH];
    size_t len[SVG_DEPTH];
    int depth = 0;

    if (strlen(s) != b->len || strncmp(s, "<svg ", 5) != 0)
        return false;
    while (*s) {
        if (*s != '<') {
            s = depth ? svg_text(s, '<') : strcmp(s, "\n") == 0 ? s + 1 : NULL;
        } else if (s[1] == '/') {
            if (depth-- == 0 || strncmp(s + 2, name[depth], len[depth]) != 0 ||
                s[2 + len[depth]] != '>')
                return false;
            s += 3 + len[depth];
        } else {
            size_t n = strcspn(s + 1, " />");
            const char *at = svg_attributes(s + 1 + n);

            if (!at || depth == SVG_DEPTH ||
                (n == 6 && strncmp(s + 1, "script", 6) == 0))
                return false;
            name[depth] = s + 1;
            len[depth] = n;
            if (*at == '>')
                depth++;
            else if (strncmp(at, "/>", 2) == 0)
                at++;
            else
                return false;
            s = at + 1;
        }
        if (!s)
            return false;
    }
    return depth == 0;
}

#endif
