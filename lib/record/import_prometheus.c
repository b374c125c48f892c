/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_prometheus.c - any Prometheus or OpenMetrics text: gauge records.
 *
 * One record for each sample; samples of histograms and summaries are samples
 * like others. Labels that say where a sample is from become keys, the others
 * stay in the name, in order, so that the name says what was measured:
 *
 *     DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-8b22",Hostname="n1",pod="a"} 512
 *     {"type":"gauge","ts":...,"host":"n1","gpu":"GPU-8b22","gpu_index":0,
 *      "name":"DCGM_FI_DEV_FB_USED{pod=\"a\"}","value":536870912,"unit":"B"}
 *
 * The names of the labels changed from one exporter to the next and between
 * versions of one (dcgm-exporter alone has four for a GPU); `role_of` has all.
 * A label whose name means something else elsewhere (node_exporter has the uuid
 * of a file system, and node for a NUMA node) counts only where its value or
 * its metric tell what it is.
 *
 * What dcgm-exporter has no value of, it writes as a text or as one of DCGM's
 * blanks, which are large numbers: such samples are no records. Neither are NaN
 * and infinities.
 */
#include "config.h"

#include "base/mem.h"
#include "record/gauge_units.h"
#include "record/import_prometheus_line.h"
#include "record/importers.h"
#include "record/nccl_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A timestamp from here on is in milliseconds (it is 1973 then), before it is
 * in seconds, as OpenMetrics has it (and the year is below 5138). */
#define MS_FROM 1e11

/* The last metric's name: samples of one metric stand together. */
struct family {
    struct ep_buf name;
    const struct ep_gauge_unit *unit;
    bool dcgm, nccl, gpu; /* gpu: about GPUs, as its name has it */
};

struct prometheus {
    struct ep_prometheus_line line;
    struct family family;
    char *text; /* the name of the record, and decoded values of labels */
    size_t text_cap;
    char file_gpu[48]; /* the GPU that the file's name tells; or "" */
    const struct ep_prometheus_label *kept[EP_PROMETHEUS_LABELS];
    int nkept;
    size_t kept_len; /* of a name with these labels: what they add to it */
    bool as_written; /* and these labels would be spelt as they are */
};

/* ==== Labels ==== */

/* What a label tells; of several for one key the first counts. */
enum role {
    HOST,     /* Hostname, hostname */
    NODE,     /* node */
    INSTANCE, /* host and port, as Prometheus knows the exporter */
    UUID,
    PCI,
    INDEX, /* gpu */
    JOB,
    DEVICE, /* the file in /dev: nothing beside the GPU */
    NONE,
    ROLES,
};

static bool is_unknown(struct ep_span v)
{
    return EP_SPAN_IS(v, "unknown") || EP_SPAN_IS(v, "N/A");
}

static bool begins(struct ep_span s, const char *text, size_t n)
{
    return s.len >= n && memcmp(s.ptr, text, n) == 0;
}

#define BEGINS(s, literal) begins(s, literal, sizeof(literal) - 1)

static bool is_uuid(struct ep_span v)
{
    return BEGINS(v, "GPU-") || BEGINS(v, "MIG-");
}

/* "3", "GPU3": the index; -1 if it is none. */
static int64_t index_of(struct ep_span v)
{
    struct ep_cursor c = {v.ptr, v.ptr + v.len};
    int64_t index;

    (void)ep_cursor_lit(&c, "GPU");
    return ep_cursor_uint(&c, &index) && c.p == c.end ? index : -1;
}

/* A label "gpu". */
static enum role role_of_gpu(struct ep_span v)
{
    if (is_uuid(v))
        return UUID;
    return index_of(v) >= 0 || is_unknown(v) ? INDEX : NONE;
}

static bool is_digits(struct ep_span v)
{
    size_t i = 0;

    while (i < v.len && v.ptr[i] >= '0' && v.ptr[i] <= '9')
        i++;
    return i == v.len;
}

static enum role role_of(const struct family *f,
                         const struct ep_prometheus_label *l)
{
    struct ep_span n = l->name;

    switch (n.len) {
    case 3:
        return EP_SPAN_IS(n, "gpu") ? role_of_gpu(l->value) : NONE;
    case 4:
        if (EP_SPAN_IS(n, "UUID"))
            return UUID;
        if (EP_SPAN_IS(n, "uuid"))
            return f->gpu || is_uuid(l->value) ? UUID : NONE;
        return EP_SPAN_IS(n, "node") && !is_digits(l->value) ? NODE : NONE;
    case 6:
        return f->dcgm && EP_SPAN_IS(n, "device") && BEGINS(l->value, "nvidia")
                   ? DEVICE
                   : NONE;
    case 7:
        return EP_SPAN_IS(n, "hpc_job") ? JOB : NONE;
    case 8:
        if (EP_SPAN_IS(n, "Hostname") || EP_SPAN_IS(n, "hostname"))
            return HOST;
        if (EP_SPAN_IS(n, "gpu_uuid"))
            return UUID;
        return EP_SPAN_IS(n, "instance") ? INSTANCE : NONE;
    case 10:
        return EP_SPAN_IS(n, "pci_bus_id") ? PCI : NONE;
    case 12:
        return EP_SPAN_IS(n, "slurm_job_id") ? JOB : NONE;
    default:
        return NONE;
    }
}

/* Is a before b, as bytes are? */
static bool before(struct ep_span a, struct ep_span b)
{
    int order;

    if (*a.ptr != *b.ptr) /* no name is empty */
        return (unsigned char)*a.ptr < (unsigned char)*b.ptr;
    order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return order ? order < 0 : a.len < b.len;
}

/* Labels that stay in the name, in order; few, and mostly sorted. */
static void keep(struct prometheus *self, const struct ep_prometheus_label *l)
{
    int i = self->nkept++;

    self->kept_len += l->name.len + l->value.len + sizeof "=\"\"," - 1;
    if (l->text != EP_PROMETHEUS_PLAIN || l->quoted)
        self->as_written = false;
    for (; i > 0 && before(l->name, self->kept[i - 1]->name); i--)
        self->kept[i] = self->kept[i - 1];
    self->kept[i] = l;
    self->as_written &= i == self->nkept - 1;
}

/* ==== Names and places ==== */

static char *put(char *to, struct ep_span s)
{
    memcpy(to, s.ptr, s.len);
    return to + s.len;
}

/* The name of the record at to; returns its end. */
static char *put_name(const struct prometheus *self, char *to)
{
    const struct ep_prometheus_line *line = &self->line;

    to = put(to, line->name);
    if (!self->nkept)
        return to;
    for (int i = 0; i < self->nkept; i++) {
        const struct ep_prometheus_label *l = self->kept[i];

        *to++ = i ? ',' : '{';
        if (l->quoted)
            *to++ = '"';
        to = put(to, l->name);
        if (l->quoted)
            *to++ = '"';
        *to++ = '=';
        *to++ = '"';
        to = ep_prometheus_encode(l, to);
        *to++ = '"';
    }
    *to++ = '}';
    return to;
}

/* "n1:9400", "10.0.0.1:9400", "[::1]:9400" without the port. */
static struct ep_span without_port(struct ep_span s)
{
    const char *end = s.ptr + s.len, *p = end;

    while (p > s.ptr && p[-1] >= '0' && p[-1] <= '9')
        p--;
    if (p == end || p == s.ptr || p[-1] != ':')
        return s;
    s.len = (size_t)(p - 1 - s.ptr);
    if (s.len > 2 && *s.ptr == '[' && s.ptr[s.len - 1] == ']')
        return (struct ep_span){s.ptr + 1, s.len - 2};
    if (memchr(s.ptr, ':', s.len)) /* an IPv6 address without port */
        s.len = (size_t)(end - s.ptr);
    return s;
}

/* The text of a label, decoded at *to if it has to be. */
static struct ep_span decoded(const struct ep_prometheus_label *l, char **to)
{
    struct ep_span s = l->value;

    if (l->text != EP_PROMETHEUS_PLAIN) {
        s.ptr = *to;
        *to = ep_prometheus_decode(l, *to);
        s.len = (size_t)(*to - s.ptr);
    }
    return s;
}

static void set_if(struct ep_record *r, enum ep_key k, struct ep_span v)
{
    if (v.len && !is_unknown(v))
        ep_record_set_span(r, k, v);
}

/* What the labels say of the place; to is where strings can go. */
static void set_where(struct prometheus *self,
                      const struct ep_prometheus_label *const said[ROLES],
                      char *to, struct ep_record *r)
{
    struct ep_span v;
    int64_t index;

    for (int i = HOST; i <= INSTANCE; i++) {
        if (!said[i])
            continue;
        v = decoded(said[i], &to);
        if (i == INSTANCE)
            v = without_port(v);
        set_if(r, EP_K_HOST, ep_nccl_host(v));
        break;
    }
    if (said[JOB])
        set_if(r, EP_K_JOB, decoded(said[JOB], &to));
    if (said[UUID]) {
        set_if(r, EP_K_GPU, decoded(said[UUID], &to));
    } else if (said[PCI]) {
        set_if(r, EP_K_GPU, ep_gauge_pci(decoded(said[PCI], &to), to));
    } else if (self->family.nccl && self->file_gpu[0]) {
        ep_record_set_str(r, EP_K_GPU, self->file_gpu);
    }
    index = said[INDEX] ? index_of(said[INDEX]->value) : -1;
    if (index >= 0)
        ep_record_set_int(r, EP_K_GPU_INDEX, index);
}

/* Labels into keys and name. */
static void take_labels(struct prometheus *self, size_t len,
                        struct ep_record *r)
{
    const struct ep_prometheus_line *line = &self->line;
    const struct ep_prometheus_label *said[ROLES] = {NULL};
    struct ep_span name;
    char *end;

    self->nkept = 0;
    self->kept_len = 0;
    self->as_written = !line->quoted;
    for (int i = 0; i < line->nlabels; i++) {
        const struct ep_prometheus_label *l = &line->labels[i];
        enum role role = role_of(&self->family, l);

        if (!l->value.len) /* as good as absent */
            continue;
        if (role == NONE)
            keep(self, l);
        else if (!said[role])
            said[role] = l;
    }
    if (said[DEVICE] && !said[INDEX] && !said[UUID])
        keep(self, said[DEVICE]);
    if (3 * len + 256 > self->text_cap)
        self->text = ep_grow(self->text, &self->text_cap, 3 * len + 256, 1);
    end = self->text;
    name = self->nkept ? line->series : line->name;
    /* nothing left out: no blank, no label, no comma behind the last one */
    if (self->nkept && (!self->as_written ||
                        name.len != line->name.len + self->kept_len + 1)) {
        end = put_name(self, end);
        name = (struct ep_span){self->text, (size_t)(end - self->text)};
    }
    ep_record_set_span(r, EP_K_NAME, name);
    set_where(self, said, end, r);
}

/* ==== Values ==== */

static bool names_gpu(struct ep_span name)
{
    return memmem(name.ptr, name.len, "gpu", 3) ||
           memmem(name.ptr, name.len, "GPU", 3) || BEGINS(name, "nvidia_");
}

static void begin_family(struct family *f, struct ep_span name)
{
    ep_buf_reset(&f->name);
    ep_buf_add(&f->name, name.ptr, name.len);
    f->unit = ep_gauge_unit_of_metric(name);
    f->dcgm = ep_gauge_is_dcgm(name);
    f->nccl = BEGINS(name, "nccl_");
    f->gpu = f->dcgm || f->nccl || names_gpu(name);
}

/*
 * DCGM has no value: dcgm_structs.h calls these blank, not found, not supported
 * and no permission, for 32 and 64 bits and for doubles. A double cannot tell
 * those of 64 bits apart. The unit is not applied yet.
 */
static bool is_blank(double v)
{
    return v == 9223372036854775808.0 ||
           (v >= 140737488355328.0 && v <= 140737488355331.0) ||
           (v >= 2147483632.0 && v <= 2147483635.0);
}

/* 1 and *value, 0 if there is none, or an error. */
static int take_value(const struct prometheus *self, double *value,
                      struct ep_error *err)
{
    struct ep_span text = self->line.value;
    char shown[64];
    double plain;

    if (!ep_gauge_number(text, self->family.unit, value)) {
        if (self->family.dcgm)
            return 0;
        return ep_error_set(err, EP_EFORMAT, "the value is %s, no number",
                            ep_escape(shown, sizeof shown, text.ptr, text.len));
    }
    if (self->family.dcgm && text.len >= 10 &&
        ep_gauge_number(text, &ep_gauge_plain, &plain) && is_blank(plain))
        return 0;
    return isfinite(*value);
}

/* The sample's time into *ts, which is kept if it has none. */
static int take_time(const struct prometheus *self, double *ts,
                     struct ep_error *err)
{
    static const struct ep_gauge_unit ms = {"s", -3, 1};
    struct ep_span text = self->line.rest;
    const char *p = text.ptr, *end = text.ptr + text.len;
    char shown[64];
    double t;

    if (!text.len || *p == '#')
        return 0;
    while (p < end && *p != ' ' && *p != '\t')
        p++;
    text.len = (size_t)(p - text.ptr);
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    if (p < end && *p != '#')
        return ep_error_set(err, EP_EFORMAT, "text behind the timestamp");
    if (!ep_gauge_number(text, &ep_gauge_plain, &t) || !(t >= 0) ||
        !isfinite(t))
        return ep_error_set(err, EP_EFORMAT, "the timestamp is %s",
                            ep_escape(shown, sizeof shown, text.ptr, text.len));
    if (t >= MS_FROM)
        (void)ep_gauge_number(text, &ms, &t);
    *ts = t;
    return 0;
}

/* ==== Lines ==== */

/* 1, 0 if the line tells nothing, or an error. */
static int take_line(struct prometheus *self, const struct ep_source *s,
                     struct ep_record *r, struct ep_error *err)
{
    const struct ep_line *in = &s->line;
    double value, ts = s->mtime > 0 ? s->mtime : 0;
    struct ep_span name;
    int rc;

    if (!in->terminated)
        return ep_error_set(err, EP_ETRUNC,
                            "the last line was cut, it has no line end");
    if (memchr(in->ptr, '\0', in->len))
        return ep_error_set(err, EP_EFORMAT, "NUL in a sample");
    name = (struct ep_span){self->family.name.ptr, self->family.name.len};
    rc = ep_prometheus_scan(in->ptr, in->len, name, &self->line, err);
    if (rc < 0)
        return rc;
    name = self->line.name;
    if (name.len != self->family.name.len ||
        memcmp(name.ptr, self->family.name.ptr, name.len) != 0)
        begin_family(&self->family, name);
    rc = take_value(self, &value, err);
    if (rc <= 0)
        return rc;
    rc = take_time(self, &ts, err);
    if (rc < 0)
        return rc;
    ep_record_begin(r, EP_GAUGE);
    ep_record_set_num(r, EP_K_TS, ts);
    take_labels(self, in->len, r);
    ep_record_set_num(r, EP_K_VALUE, value);
    ep_record_set_str(r, EP_K_UNIT, self->family.unit->unit);
    return 1;
}

/* Comments and blank lines. */
static bool is_passed_over(const struct ep_line *line)
{
    size_t i = 0;

    while (i < line->len && (line->ptr[i] == ' ' || line->ptr[i] == '\t'))
        i++;
    return i == line->len || line->ptr[i] == '#';
}

static int next(void *ctx, struct ep_source *s, struct ep_record *r,
                struct ep_error *err)
{
    struct prometheus *self = ctx;
    int rc;

    do {
        rc = ep_source_line(s, err);
        if (rc <= 0)
            return rc;
        rc = is_passed_over(&s->line) ? 0 : take_line(self, s, r, err);
    } while (rc == 0);
    return rc;
}

/*
 * NCCL Inspector has a file for each GPU, and no label for it:
 * nccl_inspector_metrics_8b22....prom. Elsewhere UUIDs begin with GPU-.
 */
static void gpu_of_file(struct prometheus *self, const char *path)
{
    static const char mark[] = "nccl_inspector_metrics_";
    const char *at = strrchr(path, '/'), *end;
    size_t n = 0;

    at = at ? at + 1 : path;
    if (strncmp(at, mark, sizeof mark - 1) != 0)
        return;
    at += sizeof mark - 1;
    end = strstr(at, ".prom");
    if (!end || end - at != 36)
        return;
    memcpy(self->file_gpu, "GPU-", 4);
    for (; n < 36; n++) {
        char c = at[n];

        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == '-'))
            break;
        self->file_gpu[4 + n] = c;
    }
    self->file_gpu[n == 36 ? 40 : 0] = '\0';
}

static void *begin(struct ep_source *s)
{
    struct prometheus *self = ep_calloc(1, sizeof *self);

    ep_buf_init(&self->family.name);
    gpu_of_file(self, s->name);
    return self;
}

static void end(void *ctx)
{
    struct prometheus *self = ctx;

    ep_buf_free(&self->family.name);
    free(self->text);
    free(self);
}

/* ==== Recognising ==== */

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == ':' || (c >= '0' && c <= '9');
}

/* name{label=" at the start of a line, which may be cut behind that. */
static bool begins_series(struct ep_span line)
{
    struct ep_cursor c = {line.ptr, line.ptr + line.len};
    const char *name = c.p, *label;

    while (c.p < c.end && is_name_byte(*c.p))
        c.p++;
    if (c.p == name || !ep_cursor_lit(&c, "{"))
        return false;
    label = c.p;
    while (c.p < c.end && is_name_byte(*c.p))
        c.p++;
    return c.p > label && ep_cursor_lit(&c, "=\"");
}

/* How sure is it of one line, which may be cut? -1: ask the next one. */
static int sure_of(const char *p, size_t len, bool whole)
{
    struct ep_span line = ep_gauge_trim((struct ep_span){p, len});
    struct ep_prometheus_line parts;
    struct ep_cursor c;
    double v;

    if (BEGINS(line, "# HELP ") || BEGINS(line, "# TYPE "))
        return 95;
    if (!line.len || *line.ptr == '#')
        return -1;
    c = (struct ep_cursor){line.ptr, line.ptr + line.len};
    if (ep_prometheus_scan(line.ptr, line.len, (struct ep_span){NULL, 0},
                           &parts, NULL) < 0)
        /* in the middle of its labels it is no other format either */
        return !whole && begins_series(line) ? 75 : 0;
    if (!ep_gauge_number(parts.value, &ep_gauge_plain, &v) &&
        !ep_gauge_is_dcgm(parts.name))
        return 0;
    if (parts.nlabels || ep_cursor_find(&c, "{}"))
        return ep_gauge_is_dcgm(parts.name) || BEGINS(parts.name, "nccl_") ? 95
                                                                           : 75;
    if (parts.rest.len && !ep_gauge_number(parts.rest, &ep_gauge_plain, &v))
        return 0;
    /* "epoch 5" is in many logs */
    return memchr(parts.name.ptr, '_', parts.name.len) ? 20 : 0;
}

static int sniff(const char *head, size_t len, const char *name)
{
    const char *p = head, *end_of_head = head + len;

    (void)name;
    while (p < end_of_head) {
        const char *nl = memchr(p, '\n', (size_t)(end_of_head - p));
        const char *to = nl ? nl : end_of_head;
        int sure = sure_of(p, (size_t)(to - p), nl != NULL);

        if (sure >= 0)
            return sure;
        p = to + (nl != NULL);
    }
    return 0;
}

const struct ep_importer ep_import_prometheus = {
    .name = "prometheus",
    .what = "Prometheus or OpenMetrics text: DCGM, node and other exporters",
    .sniff = sniff,
    .begin = begin,
    .next = next,
    .end = end,
};
