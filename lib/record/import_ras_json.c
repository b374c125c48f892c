/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_ras_json.c - the JSON documents of RAS, a line at a time.
 *
 * A report of a large job is too long to be kept, and NCCL 2.28.7 to 2.28.9
 * leave out a comma after "nvml_dev" in each element of missing_ranks, so that
 * a report is no JSON just when it matters. Hence a reader of its own: a stack
 * of places, to which each token is applied as it comes; commas are passed
 * over, since what they separate shows without them. Tokens, which do not
 * extend over a line, are checked by the scanner of lib/base.
 */
#include "config.h"

#include "record/import_ras_impl.h"

#include "base/json.h"

#include <math.h>
#include <string.h>

/* ==== The stack ==== */

static enum ep_ras_place place(const struct ep_ras *self)
{
    const struct ep_ras_json *j = &self->json;

    return j->depth ? (enum ep_ras_place)j->place[j->depth - 1]
                    : EP_RAS_NOWHERE;
}

static bool in_object(const struct ep_ras *self)
{
    return self->json.depth && self->json.object[self->json.depth - 1];
}

static bool key_is(const struct ep_ras *self, const char *name)
{
    const struct ep_ras_text *key = &self->json.key;

    return ep_span_eq((struct ep_span){key->s, key->len}, name);
}

/* Give the document up. */
static int fail(struct ep_ras *self, struct ep_error *err, int code,
                const char *what)
{
    self->json.depth = 0;
    self->at = NULL;
    (void)ep_error_set(err, code, "%s", what);
    return code;
}

static enum ep_ras_place place_of_object(const struct ep_ras *self)
{
    switch (place(self)) {
    case EP_RAS_NOWHERE:
        return self->json.depth ? EP_RAS_NOWHERE : EP_RAS_ROOT;
    case EP_RAS_ROOT:
        return key_is(self, "peer") ? EP_RAS_PEER : EP_RAS_NOWHERE;
    case EP_RAS_COMMS:
        return EP_RAS_COMM;
    case EP_RAS_RANKS:
        return EP_RAS_RANK;
    case EP_RAS_MISSING_RANKS:
        return EP_RAS_MISSING_RANK;
    case EP_RAS_RANK:
    case EP_RAS_MISSING_RANK:
        if (key_is(self, "status"))
            return EP_RAS_STATUS;
        return key_is(self, "collective_counts") ? EP_RAS_COUNTS_OBJECT
                                                 : EP_RAS_NOWHERE;
    default:
        return EP_RAS_NOWHERE;
    }
}

static enum ep_ras_place place_of_array(const struct ep_ras *self)
{
    switch (place(self)) {
    case EP_RAS_ROOT:
        return key_is(self, "communicators") ? EP_RAS_COMMS : EP_RAS_NOWHERE;
    case EP_RAS_COMM:
        if (key_is(self, "ranks"))
            return EP_RAS_RANKS;
        return key_is(self, "missing_ranks") ? EP_RAS_MISSING_RANKS
                                             : EP_RAS_NOWHERE;
    case EP_RAS_PEER:
        return key_is(self, "nvml_devs") ? EP_RAS_DEVICES : EP_RAS_NOWHERE;
    default:
        return EP_RAS_NOWHERE;
    }
}

static void enter(struct ep_ras *self, enum ep_ras_place to)
{
    struct ep_ras_json *j = &self->json;

    switch (to) {
    case EP_RAS_ROOT:
        j->event.len = 0;
        j->device = -1;
        self->comm.len = 0;
        self->size = -1;
        ep_ras_clear(&self->subject);
        break;
    case EP_RAS_COMM:
        self->comm.len = 0;
        self->size = -1;
        break;
    case EP_RAS_RANK:
    case EP_RAS_MISSING_RANK:
        ep_ras_clear(&self->subject);
        j->unresponsive = j->dead = false;
        break;
    default:
        break;
    }
}

static int open_level(struct ep_ras *self, bool object, struct ep_error *err)
{
    struct ep_ras_json *j = &self->json;
    enum ep_ras_place to =
        object ? place_of_object(self) : place_of_array(self);

    if (in_object(self) && j->want != EP_RAS_VALUE) {
        if (!object)
            return fail(self, err, EP_EFORMAT, "not JSON");
        j->depth = 0; /* and the next document begins here */
        return ep_error_set(err, EP_ETRUNC, "the report before ends early");
    }
    if (j->depth == EP_RAS_DEPTH)
        return fail(self, err, EP_ELIMIT, "too many levels");
    j->place[j->depth] = (unsigned char)to;
    j->object[j->depth++] = object;
    j->want = EP_RAS_KEY;
    enter(self, to);
    self->at++;
    return 0;
}

/* ==== Complete objects ==== */

static bool mentions(const struct ep_ras_text *t, const char *what)
{
    return memmem(t->s, t->len, what, strlen(what)) != NULL;
}

/* A monitor's document: 1 if it is about something missing or found again. */
static int take_event(struct ep_ras *self)
{
    const struct ep_ras_text *event = &self->json.event;
    struct ep_ras_subject *s = &self->subject;

    if (mentions(event, "DEAD"))
        s->lost = EP_RAS_DEAD;
    else if (mentions(event, "UNRESPONSIVE"))
        s->lost = EP_RAS_SILENT;
    else if (mentions(event, "RECOVER"))
        s->lost = EP_RAS_AGAIN;
    else
        return 0;
    if (self->json.device >= 0)
        s->gpu_index = self->json.device;
    self->told = 0;
    return 1;
}

/* A rank, present or missing. */
static int take_rank(struct ep_ras *self, bool missing, struct ep_error *err)
{
    struct ep_ras_subject *s = &self->subject;

    if (s->comm_rank < 0)
        return ep_error_set(err, EP_EFORMAT, "a rank without its number");
    if (!self->comm.len)
        return ep_error_set(err, EP_EFORMAT, "a communicator without hash");
    if (missing) {
        s->lost = self->json.dead           ? EP_RAS_DEAD
                  : self->json.unresponsive ? EP_RAS_SILENT
                                            : EP_RAS_PRESENT;
        s->gone = s->lost == EP_RAS_PRESENT;
    }
    self->told = 0;
    return 1;
}

/* 1 if a subject is complete. */
static int close_level(struct ep_ras *self, bool object, struct ep_error *err)
{
    struct ep_ras_json *j = &self->json;
    enum ep_ras_place from = place(self);

    if (j->object[j->depth - 1] != object)
        return fail(self, err, EP_EFORMAT, "brackets do not match");
    if (object && j->want != EP_RAS_KEY)
        return fail(self, err, EP_EFORMAT, "a key without value");
    j->depth--;
    j->want = EP_RAS_KEY;
    self->at++;
    if (from == EP_RAS_RANK || from == EP_RAS_MISSING_RANK)
        return take_rank(self, from == EP_RAS_MISSING_RANK, err);
    return from == EP_RAS_ROOT ? take_event(self) : 0;
}

/* ==== Values ==== */

static int64_t whole(const struct ep_json_value *v)
{
    int64_t n;

    return ep_json_int(v, &n) == 0 && n >= 0 && n < INT64_C(1) << 53 ? n : -1;
}

static struct ep_span string_of(struct ep_ras *self,
                                const struct ep_json_value *v)
{
    if (v->kind != EP_JSON_STRING)
        return (struct ep_span){NULL, 0};
    ep_buf_reset(&self->json.text);
    ep_json_unescape(v, &self->json.text);
    return (struct ep_span){self->json.text.ptr, self->json.text.len};
}

static void root_value(struct ep_ras *self, const struct ep_json_value *v)
{
    struct ep_span text = string_of(self, v);
    double ts;

    if (key_is(self, "timestamp")) {
        if (text.len && ep_strip_time(&self->zone, text.ptr, text.len, &ts))
            self->ts = ts;
    } else if (key_is(self, "event")) {
        ep_ras_set(&self->json.event, text);
    } else if (key_is(self, "details")) {
        ep_ras_set(&self->subject.details, text);
    }
}

/* Of a rank or a peer. */
static void where_value(struct ep_ras *self, const struct ep_json_value *v)
{
    struct ep_ras_subject *s = &self->subject;

    if (key_is(self, "host")) {
        ep_ras_set(&s->host, ep_nccl_host(string_of(self, v)));
    } else if (key_is(self, "addr")) { /* 10.0.0.2<41234> */
        struct ep_span text = string_of(self, v);
        const char *port = text.len ? memchr(text.ptr, '<', text.len) : NULL;

        if (port)
            text.len = (size_t)(port - text.ptr);
        ep_ras_set(&s->host, ep_nccl_host(text));
    } else if (key_is(self, "rank")) {
        s->comm_rank = whole(v);
    } else if (key_is(self, "pid")) {
        s->pid = whole(v);
    } else if (key_is(self, "nvml_dev")) {
        s->gpu_index = whole(v);
    }
}

static void status_value(struct ep_ras *self, const struct ep_json_value *v)
{
    struct ep_ras_subject *s = &self->subject;
    bool yes = v->kind == EP_JSON_TRUE;

    if (key_is(self, "init_state"))
        s->init_state = whole(v) > 0 ? whole(v) : 0;
    else if (key_is(self, "async_error"))
        s->async_error = whole(v) > 0 ? whole(v) : 0;
    else if (key_is(self, "abort_flag"))
        s->aborted = yes;
    else if (key_is(self, "unresponsive"))
        self->json.unresponsive = yes;
    else if (key_is(self, "considered_dead"))
        self->json.dead = yes;
}

static void count_value(struct ep_ras *self, const struct ep_json_value *v)
{
    struct ep_ras_subject *s = &self->subject;
    char buf[EP_NCCL_OP_MAX];
    struct ep_span op =
        ep_nccl_op((struct ep_span){self->json.key.s, self->json.key.len}, buf);

    if (!op.len || whole(v) < 0 || s->counts == EP_RAS_COUNTS)
        return;
    ep_ras_set(&s->count[s->counts].op, op);
    s->count[s->counts++].value = whole(v);
}

static void take_value(struct ep_ras *self, const struct ep_json_value *v)
{
    struct ep_ras_json *j = &self->json;

    switch (place(self)) {
    case EP_RAS_ROOT:
        root_value(self, v);
        break;
    case EP_RAS_COMM:
        if (key_is(self, "hash"))
            ep_ras_set(&self->comm, string_of(self, v));
        else if (key_is(self, "size"))
            self->size = whole(v);
        break;
    case EP_RAS_RANK:
    case EP_RAS_MISSING_RANK:
    case EP_RAS_PEER:
        where_value(self, v);
        break;
    case EP_RAS_STATUS:
        status_value(self, v);
        break;
    case EP_RAS_COUNTS_OBJECT:
        count_value(self, v);
        break;
    case EP_RAS_DEVICES: /* of a process; the one, if it is one */
        j->device = j->device == -1 ? whole(v) : -2;
        break;
    default:
        break;
    }
    j->want = EP_RAS_KEY;
}

/* ==== Tokens ==== */

/*
 * A key that only a document's beginning has: if it is elsewhere, the document
 * before was cut, and this is the next one.
 */
static int take_key(struct ep_ras *self, const struct ep_json_value *v,
                    struct ep_error *err)
{
    struct ep_ras_json *j = &self->json;

    ep_ras_set(&j->key, string_of(self, v));
    j->want = EP_RAS_COLON;
    if (place(self) == EP_RAS_ROOT ||
        !(key_is(self, "nccl_version") || key_is(self, "timestamp")))
        return 0;
    j->depth = 1;
    j->place[0] = EP_RAS_ROOT;
    j->object[0] = true;
    enter(self, EP_RAS_ROOT);
    return ep_error_set(err, EP_ETRUNC, "the report before ends early");
}

/* Behind the string that begins at p, or NULL. */
static const char *string_end(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        if (*p == '\\' && p + 1 < end)
            p++;
    return p < end ? p + 1 : NULL;
}

static const char *scalar_end(const char *p, const char *end)
{
    while (p < end && !strchr(" \t,:[]{}\"", *p))
        p++;
    return p;
}

static int take_token(struct ep_ras *self, struct ep_error *err)
{
    struct ep_ras_json *j = &self->json;
    bool string = *self->at == '"';
    const char *p = string ? string_end(self->at, self->end)
                           : scalar_end(self->at, self->end);
    struct ep_json_value v;
    struct ep_json scan;

    if (!p)
        return fail(self, err, EP_ETRUNC, "a string ends early");
    if (p == self->at ||
        ep_json_begin(&scan, self->at, (size_t)(p - self->at), &v, NULL) < 0 ||
        ep_json_end(&scan) < 0)
        return fail(self, err, EP_EFORMAT, "not JSON");
    if (in_object(self) && j->want != EP_RAS_VALUE) {
        if (!string || j->want == EP_RAS_COLON)
            return fail(self, err, EP_EFORMAT, "not JSON");
        self->at = p;
        return take_key(self, &v, err);
    }
    self->at = p;
    take_value(self, &v);
    return 0;
}

static int take(struct ep_ras *self, struct ep_error *err)
{
    switch (*self->at) {
    case ' ':
    case '\t':
    case ',':
        self->at++;
        return 0;
    case '{':
    case '[':
        return open_level(self, *self->at == '{', err);
    case '}':
    case ']':
        return close_level(self, *self->at == '}', err);
    case ':':
        if (!in_object(self) || self->json.want != EP_RAS_COLON)
            return fail(self, err, EP_EFORMAT, "not JSON");
        self->json.want = EP_RAS_VALUE;
        self->at++;
        return 0;
    default:
        return take_token(self, err);
    }
}

int ep_ras_json(struct ep_ras *self, struct ep_error *err)
{
    while (self->at < self->end) {
        int rc;

        if (!self->json.depth && *self->at != '{')
            break; /* behind the end of a document */
        rc = take(self, err);
        if (rc)
            return rc;
    }
    self->at = NULL;
    return 0;
}
