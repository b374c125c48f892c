/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import.h - from bytes of any telemetry format to records: what an importer
 * owes, and which there are.
 *
 * An importer knows one format. It is a row of functions in a file of its own,
 * import_NAME.c, named in the table of import.c; nothing else knows it. It
 * pulls lines or bytes from its source, and gives back one record per call.
 * Formats are recognised by the first bytes of an input.
 */
#ifndef EP_RECORD_IMPORT_H
#define EP_RECORD_IMPORT_H

#include "base/err.h"
#include "base/lines.h"
#include "record/record.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ep_importer;
struct ep_url_limits;

/* How to open a source; all-zero will do. */
struct ep_source_how {
    const struct ep_importer *from; /* NULL: by the first bytes */
    /* Never wait (ep_input_follow): ep_source_next returns EP_EAGAIN when
       nothing is there yet, and chooses the importer once the first bytes
       are. */
    bool follow;
    size_t buffer_bytes; /* one of many inputs (ep_input_small); 0: it is not */
    const struct ep_url_limits *limits; /* of a URL; NULL: the default */
    void (*on_wait)(void *ctx);         /* ep_input_on_wait */
    void *on_wait_ctx;
    const volatile sig_atomic_t *stop; /* ep_input_stop; NULL: never */
    /* Asked before each line: true makes ep_source_line return EP_EAGAIN, as
       if there were no more at present. NULL: never. */
    bool (*give_up)(void *ctx);
    void *give_up_ctx;
};

/* One input, as an importer sees it. */
struct ep_source {
    const char *name;       /* for messages: the path, or "stdin"; borrowed */
    double mtime;           /* s since the epoch: when the file was last
                               written, or (a pipe, a URL) when it was opened */
    char *host;             /* of a URL, as records have it; else NULL */
    struct ep_input *input; /* NULL once lines own it */
    struct ep_lines *lines; /* made by the first ep_source_line */
    struct ep_line line;    /* the line that was read last; number 0: none */
    uint64_t offset;        /* where a format without lines is, bytes from 0 */
    const struct ep_importer *importer; /* NULL: nothing was recognised */
    void *self;                         /* the importer's own */
    bool over;  /* the input has ended or failed: nothing will come */
    bool begun; /* self was made */
    bool (*give_up)(void *ctx); /* see struct ep_source_how */
    void *give_up_ctx;
};

struct ep_importer {
    const char *name; /* as --from has it: "inspector" */
    const char *what; /* one line for people: "NCCL Inspector, JSON lines" */

    /*
     * How sure is it that an input which begins with these bytes is of this
     * format? 0: it is not; 100: nothing else looks like that. head may end
     * anywhere, in the middle of a word too. Of equal answers the first in the
     * table wins. name is the file's, without folders (some formats say
     * there what is in them); it must not decide alone.
     */
    int (*sniff)(const char *head, size_t len, const char *name);

    /* Room of its own, or NULL if it needs none. Must not fail. */
    void *(*begin)(struct ep_source *s);

    /*
     * The next record into *r; its strings are borrowed from the source's
     * line or from self until the next call. Returns 1; 0 at the end of the
     * input; or an error, whose message is the bare reason:
     *   s->over      the input itself failed: final, as ep_input_read
     *   EP_EAGAIN    from ep_source_line, to be handed on: nothing is there yet
     *   otherwise    one line or element is bad (s->line, or s->offset if the
     *                format has no lines, says where); the next call goes on
     *                behind it
     * Lines that are none of this format's business (a log has many) are
     * passed over, not errors.
     */
    int (*next)(void *self, struct ep_source *s, struct ep_record *r,
                struct ep_error *err);

    void (*end)(void *self); /* NULL if there is nothing to free */
};

/* The importers; the last entry is NULL. */
extern const struct ep_importer *const ep_importers[];

/* The one of that name, or NULL. */
const struct ep_importer *ep_importer_find(const char *name);

/* The one whose sniff() is surest, or NULL if all say 0. */
const struct ep_importer *ep_importer_guess(const char *head, size_t len,
                                            const char *name);

/*
 * Open path ("-" is standard input), in two steps, so that of many URLs all
 * are on their way before one is waited for. ep_source_start opens it, or begins
 * its transfer; *s is to be closed after 0 only, and must not move.
 * ep_source_ready then chooses the importer that fits the first bytes, and waits
 * for those unless from or follow is given. An empty input fits all and gives no
 * record.
 * Errors: as ep_input_open and ep_input_follow; EP_EFORMAT "cannot read PATH:
 * ..." if nothing fits. how is borrowed during the calls.
 */
int ep_source_start(struct ep_source *s, const char *path,
                    const struct ep_source_how *how,
                    struct ep_error *err) EP_MUST_USE;
int ep_source_ready(struct ep_source *s, const struct ep_source_how *how,
                    struct ep_error *err) EP_MUST_USE;

/* Would ep_source_ready wait for a URL at present? */
bool ep_source_would_wait(struct ep_source *s);

/* Both at once; *s is to be closed after 0 only. */
int ep_source_open(struct ep_source *s, const char *path,
                   const struct ep_importer *from, void (*on_wait)(void *ctx),
                   void *on_wait_ctx, struct ep_error *err) EP_MUST_USE;
void ep_source_close(struct ep_source *s); /* all-zero allowed */

/* The importer's next(), see there. A gauge of a URL that does not say its host
   gets the URL's. */
int ep_source_next(struct ep_source *s, struct ep_record *r,
                   struct ep_error *err) EP_MUST_USE;

/*
 * For importers of line formats: the next line into s->line. Returns 1, 0 at
 * the end, or an error to be returned as it is (s->over is set, except for a
 * line that was too long). Do not mix with ep_source_read.
 */
int ep_source_line(struct ep_source *s, struct ep_error *err) EP_MUST_USE;

/* For the others: as ep_input_read, with s->over set at the end. */
long ep_source_read(struct ep_source *s, void *dst, size_t cap,
                    struct ep_error *err) EP_MUST_USE;

/* As ep_input_progress. */
bool ep_source_progress(const struct ep_source *s, uint64_t *done,
                        uint64_t *total);

#endif
