/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_ras_impl.h - what the files of the RAS importer share; private to
 * them. import_ras.c has lines in and records out, import_ras_json.c and
 * import_ras_text.c turn what a line says into a subject.
 */
#ifndef EP_RECORD_IMPORT_RAS_IMPL_H
#define EP_RECORD_IMPORT_RAS_IMPL_H

#include "record/import.h"
#include "record/nccl_text.h"
#include "record/strip.h"

#define EP_RAS_TEXT 80   /* longest host, communicator, name; the rest is cut */
#define EP_RAS_COUNTS 32 /* kinds of collectives; NCCL 2.30 has 11 */
#define EP_RAS_DEPTH 16  /* levels of a JSON document; NCCL's has 6 */

struct ep_ras_text {
    char s[EP_RAS_TEXT];
    size_t len;
};

/* Why a rank or process is reported as missing. */
enum ep_ras_lost {
    EP_RAS_PRESENT,
    EP_RAS_SILENT, /* it does not answer */
    EP_RAS_DEAD,   /* RAS has given it up */
    EP_RAS_AGAIN,  /* it answers again */
};

/* A rank of a communicator, or a process, and what is known about it. */
struct ep_ras_subject {
    struct ep_ras_text host;
    int64_t pid, comm_rank, gpu_index; /* -1: not known */
    int counts;
    struct {
        struct ep_ras_text op;
        int64_t value;
    } count[EP_RAS_COUNTS];
    int64_t init_state, async_error; /* ncclResult_t; 0: fine */
    bool aborted, gone;              /* gone: answers, but left the comm */
    enum ep_ras_lost lost;
    struct ep_ras_text details;
};

/* Where in a document a value is. */
enum ep_ras_place {
    EP_RAS_NOWHERE,
    EP_RAS_ROOT,
    EP_RAS_COMMS,
    EP_RAS_COMM,
    EP_RAS_RANKS,
    EP_RAS_RANK,
    EP_RAS_MISSING_RANKS,
    EP_RAS_MISSING_RANK,
    EP_RAS_STATUS,
    EP_RAS_COUNTS_OBJECT,
    EP_RAS_PEER,
    EP_RAS_DEVICES,
};

/* What may come next in an object. */
enum ep_ras_want { EP_RAS_KEY, EP_RAS_COLON, EP_RAS_VALUE };

struct ep_ras_json {
    int depth; /* 0: outside of a document */
    unsigned char place[EP_RAS_DEPTH];
    bool object[EP_RAS_DEPTH];
    enum ep_ras_want want; /* of the innermost level, if it is an object */
    struct ep_ras_text key;
    struct ep_buf text;       /* a decoded string */
    struct ep_ras_text event; /* of a monitor's document */
    int64_t device;           /* of a peer; -1: none, -2: several */
    bool unresponsive, dead;
};

/* Which heading the lines of a text report stand under. */
enum ep_ras_section {
    EP_RAS_OTHER,
    EP_RAS_PROCESSES_SILENT,
    EP_RAS_PROCESSES_DEAD,
    EP_RAS_RANKS_SILENT,
    EP_RAS_RANKS_COUNT,
    EP_RAS_RANKS_STATUS,
    EP_RAS_RANKS_INIT_ERROR,
    EP_RAS_RANKS_ASYNC_ERROR,
};

struct ep_ras_report {
    enum ep_ras_section section;
    struct ep_ras_text op;     /* whose counts differ */
    int64_t value;             /* of the group of ranks that is being listed */
    struct ep_ras_text status; /* likewise */
    bool group;                /* value is to be told if no rank follows */
    int64_t missing;           /* "The missing ranks:" of the line so far */
};

struct ep_ras {
    struct ep_strip_zone zone;
    struct ep_buf scratch;
    double ts;               /* of what is read, s */
    struct ep_ras_text comm; /* communicator that is read; empty: none */
    int64_t size;            /* its ranks, or -1 */
    const char *at, *end;    /* of the line: to be read yet; NULL: no line */
    struct ep_ras_subject subject;
    int told; /* records about it that are out; -1: there is none */
    struct ep_ras_json json;
    struct ep_ras_report report;
    char name[2 * EP_RAS_TEXT], id[4 * EP_RAS_TEXT]; /* of the record */
    char eid[5 * EP_RAS_TEXT];
    char evidence[2 * EP_RAS_TEXT];
};

/* Set a text; one with a NUL in it becomes empty, a long one is cut. */
void ep_ras_set(struct ep_ras_text *t, struct ep_span s);

/* Forget the subject. */
void ep_ras_clear(struct ep_ras_subject *s);

/*
 * Read on at self->at. Returns 1 when the subject is complete (the rest of the
 * line is read by the next call), 0 at the end of the line, or an error, after
 * which the document is given up and the rest of the line passed over.
 */
int ep_ras_json(struct ep_ras *self, struct ep_error *err);

/*
 * Read the line from self->at, which is no part of a document. As above; the
 * line is kept (at does not move) while there is more to tell about it.
 */
int ep_ras_report(struct ep_ras *self);

#endif
